enable subgroups;

// y[r] = sum_c W[r, c] x[c], with subgroup operations.
//
// Bindings: W f32[rows, cols] r, x f32[cols] r, y f32[rows] rw, params { rows, cols } (8 bytes).
// Grid: ceil(rows / 4), 128 threads. Where that exceeds 65,535, dispatch any (x, y, z) whose
// product is at least as large. Needs the feature `subgroups`. The standard asks for the line
// `enable subgroups;`; Naga (wgpu) does not know it yet: leave it out there.
//
// A workgroup has four rows, a subgroup is a team. With 32 threads in a subgroup each team has a
// row; smaller teams share one and add their parts in workgroup memory; larger ones take several in
// turn. Any subgroup size that divides 128 is right. simd_matvec_shared.wgsl does the same without
// subgroups.

struct Params {
  rows: u32,
  cols: u32,
}

@group(0) @binding(0) var<storage, read> W: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> n_teams: atomic<u32>;
// [row][team of the row]: at most 32 teams, of four threads.
var<workgroup> partial: array<f32, 128>;

// The terms begin, begin + stride, ... of a row.
fn dot_part(row_begin: u32, begin: u32, stride: u32) -> f32 {
  var sum = vec4<f32>(0.0);
  var c = begin;
  for (; c + 3u * stride < params.cols; c += 4u * stride) {
    let at = row_begin + c;
    sum = fma(vec4<f32>(W[at], W[at + stride], W[at + 2u * stride], W[at + 3u * stride]),
              vec4<f32>(x[c], x[c + stride], x[c + 2u * stride], x[c + 3u * stride]), sum);
  }
  for (; c < params.cols; c += stride) {
    sum.x = fma(W[row_begin + c], x[c], sum.x);
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32, @builtin(subgroup_size) team_size: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let first_row = 4u * ((group.z * groups.y + group.y) * groups.x + group.x);

  // Teams number themselves: WGSL does not say which threads make up a subgroup.
  if (thread == 0u) {
    atomicStore(&n_teams, 0u);
  }
  workgroupBarrier();
  var number = 0u;
  if (lane == 0u) {
    number = atomicAdd(&n_teams, 1u);
  }
  let team = subgroupBroadcastFirst(number);

  let teams = 128u / team_size;
  let teams_of_row = max(teams / 4u, 1u);
  for (var turn = 0u; turn < 4u; turn += teams) {
    let row = turn + team / teams_of_row;
    let part = team % teams_of_row;
    let row_begin = min(first_row + row, params.rows - 1u) * params.cols;
    let sum = subgroupAdd(dot_part(row_begin, part * team_size + lane, teams_of_row * team_size));
    if (lane == 0u) {
      partial[32u * row + part] = sum;
    }
  }
  workgroupBarrier();
  if (thread < 4u && first_row + thread < params.rows) {
    var total = 0.0;
    for (var part = 0u; part < teams_of_row; part++) {
      total += partial[32u * thread + part];
    }
    y[first_row + thread] = total;
  }
}
