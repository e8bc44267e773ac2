// output[r, c] = exp(input[r, c] - max(input[r, :])) / sum(exp(input[r, :] - max(input[r, :])))
// A row in which nothing is greater than -3.4e38 gives zeros.
//
// Bindings: input f32[R, C] r, output f32[R, C] rw,
//           params { num_rows = R, row_size = C } (8 bytes).
// Grid: main R; main_vec4 ceil(R / 4), for C divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// In main a team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a
// workgroup idle: the first groups of the grid then take 16 or 4 rows each, and the others none. In
// main_vec4 a workgroup takes four rows at once, or 16 short ones. Rows of
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
// The same of four rows.
var<workgroup> of_four: array<vec4<f32>, 256>;
var<workgroup> parts_of_four: array<vec4<f32>, 16>;

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

// Sums over the whole workgroup of four values at once, one of each row.
fn four_sums(value: vec4<f32>, thread: u32) -> vec4<f32> {
  of_four[thread] = value;
  workgroupBarrier();
  if (thread < 16u) {
    var sum = vec4<f32>(0.0);
    for (var k = thread; k < 256u; k += 64u) {
      sum += (of_four[k] + of_four[k + 16u]) + (of_four[k + 32u] + of_four[k + 48u]);
    }
    parts_of_four[thread] = sum;
  }
  workgroupBarrier();
  var total = vec4<f32>(0.0);
  for (var k = 0u; k < 16u; k += 4u) {
    total += (parts_of_four[k] + parts_of_four[k + 1u]) +
             (parts_of_four[k + 2u] + parts_of_four[k + 3u]);
  }
  return total;
}

// Maxima, as four_sums.
fn four_maxima(value: vec4<f32>, thread: u32) -> vec4<f32> {
  of_four[thread] = value;
  workgroupBarrier();
  if (thread < 16u) {
    var largest = of_four[thread];
    for (var k = thread + 16u; k < 256u; k += 16u) {
      largest = max(largest, of_four[k]);
    }
    parts_of_four[thread] = largest;
  }
  workgroupBarrier();
  var total = parts_of_four[0];
  for (var k = 1u; k < 16u; k++) {
    total = max(total, parts_of_four[k]);
  }
  return total;
}

// What a thread holds of a row: of its vec4s the thread-th and every 256th after it.
struct Row {
  x0: vec4<f32>,
  x1: vec4<f32>,
  x2: vec4<f32>,
  x3: vec4<f32>,
}

fn end_of(row: u32, width: u32) -> u32 {
  return select(0u, width, row < params.num_rows);
}

fn load_row(row: u32, width: u32, thread: u32) -> Row {
  let begin = row * width;
  let end = end_of(row, width);
  let none = vec4<f32>(kLowest);
  var r = Row(load_quad(begin, thread, end), none, none, none);
  if (width > 256u) {
    r.x1 = load_quad(begin, thread + 256u, end);
    r.x2 = load_quad(begin, thread + 512u, end);
    r.x3 = load_quad(begin, thread + 768u, end);
  }
  return r;
}

fn max_of_row(r: Row) -> f32 {
  return max_of(max(max(r.x0, r.x1), max(r.x2, r.x3)));
}

fn sum_of_row(r: Row) -> f32 {
  return sum_of((r.x0 + r.x1) + (r.x2 + r.x3));
}

fn exp_of_row(r: Row, largest: f32) -> Row {
  return Row(exp_below(r.x0, largest), exp_below(r.x1, largest), exp_below(r.x2, largest),
             exp_below(r.x3, largest));
}

fn store_row(row: u32, width: u32, thread: u32, r: Row, scale: f32) {
  let begin = row * width;
  let end = end_of(row, width);
  store_quad(begin, thread, end, r.x0 * scale);
  if (width > 256u) {
    store_quad(begin, thread + 256u, end, r.x1 * scale);
    store_quad(begin, thread + 512u, end, r.x2 * scale);
    store_quad(begin, thread + 768u, end, r.x3 * scale);
  }
}

// Rows of up to 64 vec4s, a team of 16 threads each.
fn short_row(row: u32, thread: u32) {
  let width = params.row_size / 4u;
  let lane = thread % 16u;
  let begin = row * width;
  let end = end_of(row, width);
  var r = Row(load_quad(begin, lane, end), load_quad(begin, lane + 16u, end),
              load_quad(begin, lane + 32u, end), load_quad(begin, lane + 48u, end));
  let largest = team_max(max_of_row(r), thread, 16u);
  r = exp_of_row(r, largest);
  let scale = scale_of(largest, team_sum(sum_of_row(r), thread, 16u));
  store_quad(begin, lane, end, r.x0 * scale);
  store_quad(begin, lane + 16u, end, r.x1 * scale);
  store_quad(begin, lane + 32u, end, r.x2 * scale);
  store_quad(begin, lane + 48u, end, r.x3 * scale);
}

// Of up to 1024.
fn four_rows(first: u32, thread: u32) {
  let width = params.row_size / 4u;
  var r0 = load_row(first, width, thread);
  var r1 = load_row(first + 1u, width, thread);
  var r2 = load_row(first + 2u, width, thread);
  var r3 = load_row(first + 3u, width, thread);
  let largest = four_maxima(vec4<f32>(max_of_row(r0), max_of_row(r1), max_of_row(r2),
                                      max_of_row(r3)), thread);
  r0 = exp_of_row(r0, largest.x);
  r1 = exp_of_row(r1, largest.y);
  r2 = exp_of_row(r2, largest.z);
  r3 = exp_of_row(r3, largest.w);
  let sums = four_sums(vec4<f32>(sum_of_row(r0), sum_of_row(r1), sum_of_row(r2), sum_of_row(r3)),
                       thread);
  store_row(first, width, thread, r0, scale_of(largest.x, sums.x));
  store_row(first + 1u, width, thread, r1, scale_of(largest.y, sums.y));
  store_row(first + 2u, width, thread, r2, scale_of(largest.z, sums.z));
  store_row(first + 3u, width, thread, r3, scale_of(largest.w, sums.w));
}

fn four_long_rows(first: u32, thread: u32) {
  let width = params.row_size / 4u;
  for (var row = first; row < min(first + 4u, params.num_rows); row++) {
    var state = vec2<f32>(kLowest, 0.0);
    for (var c = thread; c < width; c += 1024u) {
      let x0 = load_quad(row * width, c, width);
      let x1 = load_quad(row * width, c + 256u, width);
      let x2 = load_quad(row * width, c + 512u, width);
      let x3 = load_quad(row * width, c + 768u, width);
      state = include(include(include(include(state, x0), x1), x2), x3);
    }
    state = merge(state, thread, 256u);
    for (var c = thread; c < width; c += 256u) {
      let y = state.y * exp_below(load_quad(row * width, c, width), state.x);
      store_quad(row * width, c, width, y);
    }
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.row_size / 4u;
  let rows_of_group = select(4u, 16u, width <= 64u);
  let first_row = flat_group(group, groups) * rows_of_group;
  if (first_row >= params.num_rows) {
    return;
  }
  if (width <= 64u) {
    short_row(first_row + thread / 16u, thread);
  } else if (width <= 1024u) {
    four_rows(first_row, thread);
  } else {
    four_long_rows(first_row, thread);
  }
}
