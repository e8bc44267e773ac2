// output[r, c] = exp(input[r, c] - max(input[r, :])) / sum(exp(input[r, :] - max(input[r, :])))
// A row in which nothing is greater than -3.4e38 gives zeros.
//
// Bindings: input f32[R, C] r, output f32[R, C] rw,
//           params { num_rows = R, row_size = C } (8 bytes).
// Grid: main R; main_vec4 ceil(R / 4), for C divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// A team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a workgroup
// idle: the first groups of main's grid then take 16 or 4 rows each, and the others none. Rows of
// up to 4096 values stay in registers, 16 values a thread, all loads under way at once, and every
// exponential is taken once; longer ones are read twice, with maximum and sum from one pass: when
// the maximum grows, the sum so far is scaled down to it.

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

// Of each thread, then of each part of a team.
var<workgroup> of_threads: array<f32, 256>;
var<workgroup> of_parts: array<f32, 64>;

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

fn max_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn sum_of(x: vec4<f32>) -> f32 {
  return (x.x + x.y) + (x.z + x.w);
}

// The square root of a team's size: what one thread merges in each of the two steps below.
fn fan_of(team_size: u32) -> u32 {
  return select(select(16u, 8u, team_size <= 64u), 4u, team_size <= 16u);
}

// The sum, or the maximum, over the threads of a team, known to each of them. The second of two
// barriers lies between the reads of of_threads and what the next call writes there, the first of
// the next call between the reads of of_parts and what it writes there.
fn team_sum(value: f32, thread: u32, team_size: u32) -> f32 {
  let fan = fan_of(team_size);
  let lane = thread % team_size;
  let first = thread - lane;
  of_threads[thread] = value;
  workgroupBarrier();
  if (lane < fan) {
    var sum = 0.0;
    for (var k = first + lane; k < first + team_size; k += 4u * fan) {
      sum += (of_threads[k] + of_threads[k + fan]) +
             (of_threads[k + 2u * fan] + of_threads[k + 3u * fan]);
    }
    of_parts[first / fan + lane] = sum;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var k = first / fan; k < first / fan + fan; k += 4u) {
    total += (of_parts[k] + of_parts[k + 1u]) + (of_parts[k + 2u] + of_parts[k + 3u]);
  }
  return total;
}

fn team_max(value: f32, thread: u32, team_size: u32) -> f32 {
  let fan = fan_of(team_size);
  let lane = thread % team_size;
  let first = thread - lane;
  of_threads[thread] = value;
  workgroupBarrier();
  if (lane < fan) {
    var largest = kLowest;
    for (var k = first + lane; k < first + team_size; k += 4u * fan) {
      largest = max(largest, max_of(vec4<f32>(of_threads[k], of_threads[k + fan],
                                              of_threads[k + 2u * fan],
                                              of_threads[k + 3u * fan])));
    }
    of_parts[first / fan + lane] = largest;
  }
  workgroupBarrier();
  var total = kLowest;
  for (var k = first / fan; k < first / fan + fan; k += 4u) {
    total = max(total, max_of(vec4<f32>(of_parts[k], of_parts[k + 1u], of_parts[k + 2u],
                                        of_parts[k + 3u])));
  }
  return total;
}

// exp(x - m) for x <= m, as a power of two. The difference of two finite values may overflow, half
// of it does not; exp(-200) is 0 anyway.
fn exp_below(x: vec4<f32>, m: f32) -> vec4<f32> {
  return exp2(max(0.5 * x - 0.5 * m, vec4<f32>(-100.0)) * 2.8853900817779268);
}

// (maximum, sum of exp(x - maximum)) of a part of a row, with four more values.
fn include(state: vec2<f32>, x: vec4<f32>) -> vec2<f32> {
  let m = max(state.x, max_of(x));
  let old = exp_below(vec4<f32>(state.x), m).x;
  return vec2<f32>(m, fma(state.y, old, sum_of(exp_below(x, m))));
}

// The maximum of a row, and the reciprocal of its sum, or 0, from the states of the team's threads.
fn merge(state: vec2<f32>, thread: u32, team_size: u32) -> vec2<f32> {
  let largest = team_max(state.x, thread, team_size);
  let mine = state.y * exp_below(vec4<f32>(state.x), largest).x;
  return vec2<f32>(largest, scale_of(largest, team_sum(mine, thread, team_size)));
}

fn scale_of(largest: f32, sum: f32) -> f32 {
  return select(0.0, 1.0 / sum, largest > kLowest);
}

// Four values of a row that starts at `begin`: c and every team_size-th after it; kLowest from
// `end`, which is what exp makes 0 of.
fn load4(begin: u32, c: u32, end: u32, team_size: u32) -> vec4<f32> {
  let at = vec4<u32>(c, c + team_size, c + 2u * team_size, c + 3u * team_size);
  let inside = at < vec4<u32>(end);
  let safe = select(vec4<u32>(0u), begin + at, inside);
  return select(vec4<f32>(kLowest),
                vec4<f32>(input[safe.x], input[safe.y], input[safe.z], input[safe.w]), inside);
}

fn store4(begin: u32, c: u32, end: u32, team_size: u32, y: vec4<f32>) {
  if (c < end) {
    output[begin + c] = y.x;
  }
  if (c + team_size < end) {
    output[begin + c + team_size] = y.y;
  }
  if (c + 2u * team_size < end) {
    output[begin + c + 2u * team_size] = y.z;
  }
  if (c + 3u * team_size < end) {
    output[begin + c + 3u * team_size] = y.w;
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let width = params.row_size;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 64u);
  let first_row = flat_group(group, groups) * (256u / team_size);
  if (first_row >= params.num_rows) {
    return;
  }
  let row = first_row + thread / team_size;
  let lane = thread % team_size;
  let begin = row * width;
  let end = select(0u, width, row < params.num_rows);
  let step = 4u * team_size;

  if (width <= step) {
    var x0 = load4(begin, lane, end, team_size);
    let largest = team_max(max_of(x0), thread, team_size);
    x0 = exp_below(x0, largest);
    let scale = scale_of(largest, team_sum(sum_of(x0), thread, team_size));
    store4(begin, lane, end, team_size, x0 * scale);
  } else if (width <= 4u * step) {
    var x0 = load4(begin, lane, end, team_size);
    var x1 = load4(begin, lane + step, end, team_size);
    var x2 = load4(begin, lane + 2u * step, end, team_size);
    var x3 = load4(begin, lane + 3u * step, end, team_size);
    let largest = team_max(max_of(max(max(x0, x1), max(x2, x3))), thread, team_size);
    x0 = exp_below(x0, largest);
    x1 = exp_below(x1, largest);
    x2 = exp_below(x2, largest);
    x3 = exp_below(x3, largest);
    let sum = team_sum(sum_of((x0 + x1) + (x2 + x3)), thread, team_size);
    let scale = scale_of(largest, sum);
    store4(begin, lane, end, team_size, x0 * scale);
    store4(begin, lane + step, end, team_size, x1 * scale);
    store4(begin, lane + 2u * step, end, team_size, x2 * scale);
    store4(begin, lane + 3u * step, end, team_size, x3 * scale);
  } else {
    var state = vec2<f32>(kLowest, 0.0);
    for (var c = lane; c < width; c += step) {
      state = include(state, load4(begin, c, end, team_size));
    }
    state = merge(state, thread, team_size);
    for (var c = lane; c < width; c += step) {
      let y = state.y * exp_below(load4(begin, c, end, team_size), state.x);
      store4(begin, c, end, team_size, y);
    }
  }
}

// As above, in units of vec4.
fn load_quad(begin: u32, c: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(kLowest), input4[select(0u, begin + c, c < end)], c < end);
}

fn store_quad(begin: u32, c: u32, end: u32, y: vec4<f32>) {
  if (c < end) {
    output4[begin + c] = y;
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.row_size / 4u;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 64u);
  let n_teams = 256u / team_size;
  // At least the four rows that the grid leaves to a group.
  let first_row = flat_group(group, groups) * max(n_teams, 4u);
  let end_row = min(first_row + max(n_teams, 4u), params.num_rows);
  for (var team_row = first_row; team_row < end_row; team_row += n_teams) {
    let row = team_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.num_rows);
    if (width <= 4u * team_size) {
      var x0 = load_quad(begin, lane, end);
      var x1 = load_quad(begin, lane + team_size, end);
      var x2 = load_quad(begin, lane + 2u * team_size, end);
      var x3 = load_quad(begin, lane + 3u * team_size, end);
      let largest = team_max(max_of(max(max(x0, x1), max(x2, x3))), thread, team_size);
      x0 = exp_below(x0, largest);
      x1 = exp_below(x1, largest);
      x2 = exp_below(x2, largest);
      x3 = exp_below(x3, largest);
      let sum = team_sum(sum_of((x0 + x1) + (x2 + x3)), thread, team_size);
      let scale = scale_of(largest, sum);
      store_quad(begin, lane, end, x0 * scale);
      store_quad(begin, lane + team_size, end, x1 * scale);
      store_quad(begin, lane + 2u * team_size, end, x2 * scale);
      store_quad(begin, lane + 3u * team_size, end, x3 * scale);
    } else {
      var state = vec2<f32>(kLowest, 0.0);
      for (var c = lane; c < width; c += 4u * team_size) {
        let x0 = load_quad(begin, c, end);
        let x1 = load_quad(begin, c + team_size, end);
        let x2 = load_quad(begin, c + 2u * team_size, end);
        let x3 = load_quad(begin, c + 3u * team_size, end);
        state = include(include(include(include(state, x0), x1), x2), x3);
      }
      state = merge(state, thread, team_size);
      for (var c = lane; c < width; c += 4u * team_size) {
        let x0 = load_quad(begin, c, end);
        let x1 = load_quad(begin, c + team_size, end);
        let x2 = load_quad(begin, c + 2u * team_size, end);
        let x3 = load_quad(begin, c + 3u * team_size, end);
        store_quad(begin, c, end, state.y * exp_below(x0, state.x));
        store_quad(begin, c + team_size, end, state.y * exp_below(x1, state.x));
        store_quad(begin, c + 2u * team_size, end, state.y * exp_below(x2, state.x));
        store_quad(begin, c + 3u * team_size, end, state.y * exp_below(x3, state.x));
      }
    }
  }
}
