// The index of the largest value of each row, the lowest among equals. A workgroup looks at a chunk of
// a row, each thread at every 256th value of it, then a tree over the threads. Rows of one chunk are
// done with that; the winners of longer ones are candidates for a second dispatch.
//   FROM   'values', or 'candidates' (n_columns of them in a row, in order)
//   TO     'ids', or 'candidates' (n_chunks of them in a row)
//   LIVE   1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  chunk: u32,  // values
  n_chunks: u32,
  ids_first: u32,
  x_first: u32,
  x_stride: u32,
  live_first: u32,
}
// A candidate: the bits of the value, and its place in the row.
#if TO == 'ids'
@group(0) @binding(0) var<storage, read_write> ids: array<u32>;
#else
@group(0) @binding(0) var<storage, read_write> winners: array<vec2<u32>>;
#endif
#if FROM == 'values'
@group(0) @binding(1) var<storage, read> x: array<f32>;
#else
@group(0) @binding(1) var<storage, read> x: array<vec2<u32>>;
#endif
#if LIVE
@group(0) @binding(2) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${2 + LIVE}) var<uniform> params: Params;

var<workgroup> largest: array<f32, 256>;
var<workgroup> places: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let number = group.y * n_groups.x + group.x;
  let row = number / params.n_chunks;
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  if (row >= n_rows) {  // the whole workgroup
    return;
  }
  let x_row = params.x_first + row * params.x_stride;
  let begin = number % params.n_chunks * params.chunk;
  let end = min(begin + params.chunk, params.n_columns);
  // Behind the end a thread looks at the last value again, which changes nothing: four loads are on
  // their way together, without a branch.
#if FROM == 'values'
  var value = x[x_row + min(begin + thread, end - 1u)];
  var place = min(begin + thread, end - 1u);
#else
  var value = bitcast<f32>(x[x_row + min(begin + thread, end - 1u)].x);
  var place = x[x_row + min(begin + thread, end - 1u)].y;
#endif
  for (var i = begin + thread; i < end; i += 1024u) {
#for k in 0..4
    let at${k} = min(i + ${256 * k}u, end - 1u);
#if FROM == 'values'
    let other${k} = x[x_row + at${k}];
    let place${k} = at${k};
#else
    let candidate${k} = x[x_row + at${k}];
    let other${k} = bitcast<f32>(candidate${k}.x);
    let place${k} = candidate${k}.y;
#endif
#endfor
#for k in 0..4
    if (other${k} > value) {
      value = other${k};
      place = place${k};
    }
#endfor
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
#if TO == 'ids'
    ids[params.ids_first + row] = places[0];
#else
    winners[number] = vec2<u32>(bitcast<u32>(largest[0]), places[0]);
#endif
  }
}
