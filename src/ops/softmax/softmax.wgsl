// output[r, c] = exp(input[r, c] - max(input[r, :])) / sum(exp(input[r, :] - max(input[r, :])))
// A row in which nothing is greater than -3.4e38 gives zeros.
//
// Bindings: input f32[R, C] r, output f32[R, C] rw,
//           params { num_rows = R, row_size = C } (8 bytes).
// Grid: main R; main_vec4 ceil(R / 4), for C divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// Maximum and sum come from one pass: when the maximum grows, the sum so far is scaled down to it.
// A team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a workgroup
// idle: the first groups of main's grid then take 16 or 4 rows each, and the others none.

struct Params {
  num_rows: u32,
  row_size: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(0) var<storage, read> input4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output4: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

const kLowest = -3.4e38;

// (maximum, sum of exp(x - maximum)) of a part of a row.
var<workgroup> partial: array<vec2<f32>, 256>;

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

fn max_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn sum_of(x: vec4<f32>) -> f32 {
  return (x.x + x.y) + (x.z + x.w);
}

// exp(x - m) for x <= m; the difference of two finite values may overflow, exp(-200) is 0 anyway.
fn exp_below(x: vec4<f32>, m: f32) -> vec4<f32> {
  return exp(max(0.5 * x - 0.5 * m, vec4<f32>(-100.0)) * 2.0);
}

fn include(state: vec2<f32>, x: vec4<f32>) -> vec2<f32> {
  let m = max(state.x, max_of(x));
  let old = exp_below(vec4<f32>(state.x), m).x;
  return vec2<f32>(m, fma(state.y, old, sum_of(exp_below(x, m))));
}

fn merge(a: vec2<f32>, b: vec2<f32>, c: vec2<f32>, d: vec2<f32>) -> vec2<f32> {
  let maxima = vec4<f32>(a.x, b.x, c.x, d.x);
  let m = max_of(maxima);
  return vec2<f32>(m, sum_of(vec4<f32>(a.y, b.y, c.y, d.y) * exp_below(maxima, m)));
}

// Merges what the threads of a team saw; each of them gets the result. Four a step, so that 256
// threads take four steps: team sizes are powers of four.
fn team_merge(state: vec2<f32>, thread: u32, team_size: u32) -> vec2<f32> {
  let lane = thread % team_size;
  partial[thread] = state;
  for (var stride = team_size / 4u; stride > 0u; stride /= 4u) {
    workgroupBarrier();
    if (lane < stride) {
      partial[thread] = merge(partial[thread], partial[thread + stride],
                              partial[thread + 2u * stride], partial[thread + 3u * stride]);
    }
  }
  workgroupBarrier();
  let merged = partial[thread - lane];
  workgroupBarrier();  // before the next row overwrites it
  return merged;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let width = params.row_size;
  let team_size = select(select(256u, 64u, width <= 128u), 16u, width <= 32u);
  let first_row = flat_group(group, groups) * (256u / team_size);
  if (first_row < params.num_rows) {
    let row = first_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.num_rows);

    var state = vec2<f32>(kLowest, 0.0);
    var c = lane;
    for (; c + 3u * team_size < end; c += 4u * team_size) {
      let i = begin + c;
      state = include(state, vec4<f32>(input[i], input[i + team_size], input[i + 2u * team_size],
                                       input[i + 3u * team_size]));
    }
    for (; c < end; c += team_size) {
      let x = input[begin + c];
      let m = max(state.x, x);
      let e = exp_below(vec4<f32>(state.x, x, m, m), m);
      state = vec2<f32>(m, fma(state.y, e.x, e.y));
    }
    state = team_merge(state, thread, team_size);
    let scale = select(0.0, 1.0 / state.y, state.x > kLowest);

    c = lane;
    for (; c + 3u * team_size < end; c += 4u * team_size) {
      let i = begin + c;
      let y = scale * exp_below(vec4<f32>(input[i], input[i + team_size],
                                          input[i + 2u * team_size], input[i + 3u * team_size]),
                                state.x);
      output[i] = y.x;
      output[i + team_size] = y.y;
      output[i + 2u * team_size] = y.z;
      output[i + 3u * team_size] = y.w;
    }
    for (; c < end; c += team_size) {
      output[begin + c] = scale * exp_below(vec4<f32>(input[begin + c]), state.x).x;
    }
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.row_size / 4u;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 32u);
  let n_teams = 256u / team_size;
  // At least the four rows that the grid leaves to a group.
  let first_row = flat_group(group, groups) * max(n_teams, 4u);
  let end_row = min(first_row + max(n_teams, 4u), params.num_rows);
  for (var team_row = first_row; team_row < end_row; team_row += n_teams) {
    let row = team_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.num_rows);

    var state = vec2<f32>(kLowest, 0.0);
    var c = lane;
    for (; c + 3u * team_size < end; c += 4u * team_size) {
      let i = begin + c;
      let x0 = input4[i];
      let x1 = input4[i + team_size];
      let x2 = input4[i + 2u * team_size];
      let x3 = input4[i + 3u * team_size];
      state = include(include(include(include(state, x0), x1), x2), x3);
    }
    for (; c < end; c += team_size) {
      state = include(state, input4[begin + c]);
    }
    state = team_merge(state, thread, team_size);
    let scale = select(0.0, 1.0 / state.y, state.x > kLowest);

    c = lane;
    for (; c + 3u * team_size < end; c += 4u * team_size) {
      let i = begin + c;
      let x0 = input4[i];
      let x1 = input4[i + team_size];
      let x2 = input4[i + 2u * team_size];
      let x3 = input4[i + 3u * team_size];
      output4[i] = scale * exp_below(x0, state.x);
      output4[i + team_size] = scale * exp_below(x1, state.x);
      output4[i + 2u * team_size] = scale * exp_below(x2, state.x);
      output4[i + 3u * team_size] = scale * exp_below(x3, state.x);
    }
    for (; c < end; c += team_size) {
      output4[begin + c] = scale * exp_below(input4[begin + c], state.x);
    }
  }
}
