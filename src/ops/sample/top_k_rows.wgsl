// The k largest values of each row in falling order, lower indices first among equals, NaN last. One
// workgroup makes one row: each thread knows the best of every 256th value that is not out yet, the
// workgroup takes the best of those, and the thread that had it looks for its next.
//   LIVE   1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  k: u32,
  values_first: u32,
  values_stride: u32,
  ids_first: u32,
  ids_stride: u32,
  x_first: u32,
  x_stride: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
#if LIVE
@group(0) @binding(3) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + LIVE}) var<uniform> params: Params;

// A value's place in the order of values, and its index; an index of kNone comes after all others.
struct Candidate {
  key: u32,
  place: u32,
}
const kNone = 0xffffffffu;

var<workgroup> of_threads: array<Candidate, 256>;
var<workgroup> of_parts: array<Candidate, 16>;

fn key_of(bits: u32) -> u32 {
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) {
    return 0u;  // NaN
  }
  if (size == 0u) {
    return 0x80000000u;  // zeros are equal
  }
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn comes_before(a: Candidate, b: Candidate) -> bool {
  return a.key > b.key || (a.key == b.key && a.place < b.place);
}

fn first_of(a: Candidate, b: Candidate) -> Candidate {
  if (comes_before(b, a)) {
    return b;
  }
  return a;
}

// The thread's best value that comes after `last`, or is any where last.place is kNone.
fn next_of(row: u32, thread: u32, last: Candidate) -> Candidate {
  var best = Candidate(0u, kNone);
  for (var i = thread; i < params.n_columns; i += 256u) {
    let other = Candidate(key_of(x[row + i]), i);
    if ((last.place == kNone || comes_before(last, other)) && comes_before(other, best)) {
      best = other;
    }
  }
  return best;
}

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
  var best = next_of(x_row, thread, Candidate(0u, kNone));
  for (var j = 0u; j < params.k; j++) {
    of_threads[thread] = best;
    workgroupBarrier();
    if (thread < 16u) {
      var of_part = of_threads[thread];
      for (var i = thread + 16u; i < 256u; i += 16u) {
        of_part = first_of(of_part, of_threads[i]);
      }
      of_parts[thread] = of_part;
    }
    workgroupBarrier();
    var chosen = of_parts[0];
    for (var i = 1u; i < 16u; i++) {
      chosen = first_of(chosen, of_parts[i]);
    }
    if (chosen.place % 256u == thread) {
      values[params.values_first + row * params.values_stride + j] = x[x_row + chosen.place];
      ids[params.ids_first + row * params.ids_stride + j] = chosen.place;
      best = next_of(x_row, thread, chosen);
    }
  }
}
