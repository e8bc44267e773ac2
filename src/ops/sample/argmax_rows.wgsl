// The index of the largest value of each row, the lowest among equals. One workgroup makes one row:
// each thread looks at every 256th value, then a tree over the threads.
//   LIVE   1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  ids_first: u32,
  x_first: u32,
  x_stride: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> ids: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
#if LIVE
@group(0) @binding(2) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${2 + LIVE}) var<uniform> params: Params;

var<workgroup> largest: array<f32, 256>;
var<workgroup> places: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let row = group.y * n_groups.x + group.x;
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  if (row >= n_rows) {  // the whole workgroup
    return;
  }
  let x_row = params.x_first + row * params.x_stride;
  // A thread without a value of its own stands for the first one.
  var value = x[x_row];
  var place = 0u;
  for (var i = thread; i < params.n_columns; i += 256u) {
    let other = x[x_row + i];
    if (other > value) {
      value = other;
      place = i;
    }
  }
  largest[thread] = value;
  places[thread] = place;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half >>= 1u) {
    if (thread < half) {
      let other = largest[thread + half];
      let other_place = places[thread + half];
      if (other > largest[thread] || (other == largest[thread] && other_place < places[thread])) {
        largest[thread] = other;
        places[thread] = other_place;
      }
    }
    workgroupBarrier();
  }
  if (thread == 0u) {
    ids[params.ids_first + row] = places[0];
  }
}
