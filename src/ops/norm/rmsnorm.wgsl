// output[t, d] = input[t, d] / sqrt(mean(input[t, :]^2) + eps) * weight[d]
//
// Bindings: input f32[T, D] r, weight f32[D] r, output f32[T, D] rw,
//           params { seq_len = T, hidden_size = D, eps_bits, 0 } (16 bytes; eps as the bits of an
//           f32).
// Grid: main T; main_vec4 ceil(T / 4), for D divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// A team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a workgroup
// idle: the first groups of main's grid then take 16 or 4 rows each, and the others none.

struct Params {
  seq_len: u32,
  hidden_size: u32,
  eps_bits: u32,
  pad: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(0) var<storage, read> input4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight4: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> output4: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> partial: array<f32, 256>;

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

// The sum over the threads of a team, known to each of them. Four values a step, so that 256
// threads take four steps: team sizes are powers of four.
fn team_sum(value: f32, thread: u32, team_size: u32) -> f32 {
  let lane = thread % team_size;
  partial[thread] = value;
  for (var stride = team_size / 4u; stride > 0u; stride /= 4u) {
    workgroupBarrier();
    if (lane < stride) {
      partial[thread] = (partial[thread] + partial[thread + stride]) +
                        (partial[thread + 2u * stride] + partial[thread + 3u * stride]);
    }
  }
  workgroupBarrier();
  let total = partial[thread - lane];
  workgroupBarrier();  // before the next sum overwrites it
  return total;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let width = params.hidden_size;
  let team_size = select(select(256u, 64u, width <= 128u), 16u, width <= 32u);
  let first_row = flat_group(group, groups) * (256u / team_size);
  if (first_row < params.seq_len) {
    let row = first_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.seq_len);

    var squares = vec4<f32>(0.0);
    var d = lane;
    for (; d + 3u * team_size < end; d += 4u * team_size) {
      let i = begin + d;
      let x = vec4<f32>(input[i], input[i + team_size], input[i + 2u * team_size],
                        input[i + 3u * team_size]);
      squares = fma(x, x, squares);
    }
    for (; d < end; d += team_size) {
      let x = input[begin + d];
      squares.x = fma(x, x, squares.x);
    }
    let total = team_sum((squares.x + squares.y) + (squares.z + squares.w), thread, team_size);
    let scale = 1.0 / sqrt(total / f32(width) + bitcast<f32>(params.eps_bits));

    d = lane;
    for (; d + 3u * team_size < end; d += 4u * team_size) {
      let i = begin + d;
      let x = vec4<f32>(input[i], input[i + team_size], input[i + 2u * team_size],
                        input[i + 3u * team_size]);
      let w = vec4<f32>(weight[d], weight[d + team_size], weight[d + 2u * team_size],
                        weight[d + 3u * team_size]);
      let y = x * scale * w;
      output[i] = y.x;
      output[i + team_size] = y.y;
      output[i + 2u * team_size] = y.z;
      output[i + 3u * team_size] = y.w;
    }
    for (; d < end; d += team_size) {
      output[begin + d] = input[begin + d] * scale * weight[d];
    }
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.hidden_size / 4u;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 32u);
  let n_teams = 256u / team_size;
  // At least the four rows that the grid leaves to a group.
  let first_row = flat_group(group, groups) * max(n_teams, 4u);
  let end_row = min(first_row + max(n_teams, 4u), params.seq_len);
  for (var team_row = first_row; team_row < end_row; team_row += n_teams) {
    let row = team_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.seq_len);

    var squares = vec4<f32>(0.0);
    var d = lane;
    for (; d + 3u * team_size < end; d += 4u * team_size) {
      let i = begin + d;
      let x0 = input4[i];
      let x1 = input4[i + team_size];
      let x2 = input4[i + 2u * team_size];
      let x3 = input4[i + 3u * team_size];
      squares = fma(x0, x0, fma(x1, x1, fma(x2, x2, fma(x3, x3, squares))));
    }
    for (; d < end; d += team_size) {
      let x = input4[begin + d];
      squares = fma(x, x, squares);
    }
    let total = team_sum((squares.x + squares.y) + (squares.z + squares.w), thread, team_size);
    let scale = 1.0 / sqrt(total / f32(params.hidden_size) + bitcast<f32>(params.eps_bits));

    d = lane;
    for (; d + 3u * team_size < end; d += 4u * team_size) {
      let i = begin + d;
      let x0 = input4[i];
      let x1 = input4[i + team_size];
      let x2 = input4[i + 2u * team_size];
      let x3 = input4[i + 3u * team_size];
      output4[i] = x0 * scale * weight4[d];
      output4[i + team_size] = x1 * scale * weight4[d + team_size];
      output4[i + 2u * team_size] = x2 * scale * weight4[d + 2u * team_size];
      output4[i + 3u * team_size] = x3 * scale * weight4[d + 3u * team_size];
    }
    for (; d < end; d += team_size) {
      output4[begin + d] = input4[begin + d] * scale * weight4[d];
    }
  }
}
