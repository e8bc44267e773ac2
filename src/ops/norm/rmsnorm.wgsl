// output[t, d] = input[t, d] / sqrt(mean(input[t, :]^2) + eps) * weight[d]
//
// Bindings: input f32[T, D] r, weight f32[D] r, output f32[T, D] rw,
//           params { seq_len = T, hidden_size = D, eps_bits, 0 } (16 bytes; eps as the bits of an
//           f32).
// Grid: main T; main_vec4 ceil(T / 4), for D divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// In main a team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a
// workgroup idle: the first groups of the grid then take 16 or 4 rows each, and the others none. In
// main_vec4 a workgroup takes four rows at once, or 16 short ones. Rows of
// up to 4096 values stay in registers, 16 values a thread, all loads under way at once; longer ones
// are read twice.

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

// Of each thread, then of each part of a team.
var<workgroup> thread_sums: array<f32, 256>;
var<workgroup> part_sums: array<f32, 64>;
// The same of four rows.
var<workgroup> of_four: array<vec4<f32>, 256>;
var<workgroup> parts_of_four: array<vec4<f32>, 16>;

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

// The square root of a team's size: what one thread adds up in each of the two steps of a sum.
fn fan_of(team_size: u32) -> u32 {
  return select(select(16u, 8u, team_size <= 64u), 4u, team_size <= 16u);
}

// The sum over the threads of a team, known to each of them. The second of two barriers lies
// between the reads of thread_sums and what the next sum writes there, the first of the next sum
// between the reads of part_sums and what it writes there.
fn team_sum(value: f32, thread: u32, team_size: u32) -> f32 {
  let fan = fan_of(team_size);
  let lane = thread % team_size;
  let first = thread - lane;
  thread_sums[thread] = value;
  workgroupBarrier();
  if (lane < fan) {
    var sum = 0.0;
    for (var k = first + lane; k < first + team_size; k += 4u * fan) {
      sum += (thread_sums[k] + thread_sums[k + fan]) +
             (thread_sums[k + 2u * fan] + thread_sums[k + 3u * fan]);
    }
    part_sums[first / fan + lane] = sum;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var k = first / fan; k < first / fan + fan; k += 4u) {
    total += (part_sums[k] + part_sums[k + 1u]) + (part_sums[k + 2u] + part_sums[k + 3u]);
  }
  return total;
}

fn sum_of(x: vec4<f32>) -> f32 {
  return (x.x + x.y) + (x.z + x.w);
}

fn scale_of(squares: f32) -> f32 {
  return 1.0 / sqrt(squares / f32(params.hidden_size) + bitcast<f32>(params.eps_bits));
}

// Four values of a row that starts at `begin`: d and every team_size-th after it; zeros from `end`.
fn load4(begin: u32, d: u32, end: u32, team_size: u32) -> vec4<f32> {
  let at = vec4<u32>(d, d + team_size, d + 2u * team_size, d + 3u * team_size);
  let inside = at < vec4<u32>(end);
  let safe = select(vec4<u32>(0u), begin + at, inside);
  return select(vec4<f32>(0.0),
                vec4<f32>(input[safe.x], input[safe.y], input[safe.z], input[safe.w]), inside);
}

fn store4(begin: u32, d: u32, end: u32, team_size: u32, y: vec4<f32>) {
  if (d < end) {
    output[begin + d] = y.x * weight[d];
  }
  if (d + team_size < end) {
    output[begin + d + team_size] = y.y * weight[d + team_size];
  }
  if (d + 2u * team_size < end) {
    output[begin + d + 2u * team_size] = y.z * weight[d + 2u * team_size];
  }
  if (d + 3u * team_size < end) {
    output[begin + d + 3u * team_size] = y.w * weight[d + 3u * team_size];
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let width = params.hidden_size;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 64u);
  let first_row = flat_group(group, groups) * (256u / team_size);
  if (first_row >= params.seq_len) {
    return;
  }
  let row = first_row + thread / team_size;
  let lane = thread % team_size;
  let begin = row * width;
  let end = select(0u, width, row < params.seq_len);
  let step = 4u * team_size;

  if (width <= 4u * step) {
    var x1 = vec4<f32>(0.0);
    var x2 = vec4<f32>(0.0);
    var x3 = vec4<f32>(0.0);
    let x0 = load4(begin, lane, end, team_size);
    if (width > step) {
      x1 = load4(begin, lane + step, end, team_size);
      x2 = load4(begin, lane + 2u * step, end, team_size);
      x3 = load4(begin, lane + 3u * step, end, team_size);
    }
    let squares = fma(x0, x0, fma(x1, x1, fma(x2, x2, x3 * x3)));
    let scale = scale_of(team_sum(sum_of(squares), thread, team_size));
    store4(begin, lane, end, team_size, x0 * scale);
    if (width > step) {
      store4(begin, lane + step, end, team_size, x1 * scale);
      store4(begin, lane + 2u * step, end, team_size, x2 * scale);
      store4(begin, lane + 3u * step, end, team_size, x3 * scale);
    }
  } else {
    var squares = vec4<f32>(0.0);
    for (var d = lane; d < width; d += step) {
      let x = load4(begin, d, end, team_size);
      squares = fma(x, x, squares);
    }
    let scale = scale_of(team_sum(sum_of(squares), thread, team_size));
    for (var d = lane; d < width; d += step) {
      store4(begin, d, end, team_size, load4(begin, d, end, team_size) * scale);
    }
  }
}

// As above, in units of vec4.
fn load_quad(begin: u32, d: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(0.0), input4[select(0u, begin + d, d < end)], d < end);
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

// What a thread holds of a row: of its vec4s the thread-th and every 256th after it.
struct Row {
  x0: vec4<f32>,
  x1: vec4<f32>,
  x2: vec4<f32>,
  x3: vec4<f32>,
}

fn end_of(row: u32, width: u32) -> u32 {
  return select(0u, width, row < params.seq_len);
}

fn load_row(row: u32, width: u32, thread: u32) -> Row {
  let begin = row * width;
  let end = end_of(row, width);
  var r = Row(load_quad(begin, thread, end), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
  if (width > 256u) {
    r.x1 = load_quad(begin, thread + 256u, end);
    r.x2 = load_quad(begin, thread + 512u, end);
    r.x3 = load_quad(begin, thread + 768u, end);
  }
  return r;
}

fn squares_of(r: Row) -> f32 {
  return sum_of(fma(r.x0, r.x0, fma(r.x1, r.x1, fma(r.x2, r.x2, r.x3 * r.x3))));
}

fn store_quad(begin: u32, d: u32, end: u32, y: vec4<f32>) {
  if (d < end) {
    output4[begin + d] = y;
  }
}

// Rows of up to 64 vec4s, a team of 16 threads each.
fn short_row(row: u32, thread: u32) {
  let width = params.hidden_size / 4u;
  let lane = thread % 16u;
  let begin = row * width;
  let end = end_of(row, width);
  let x0 = load_quad(begin, lane, end);
  let x1 = load_quad(begin, lane + 16u, end);
  let x2 = load_quad(begin, lane + 32u, end);
  let x3 = load_quad(begin, lane + 48u, end);
  let scale = scale_of(team_sum(squares_of(Row(x0, x1, x2, x3)), thread, 16u));
  let last = width - 1u;
  store_quad(begin, lane, end, x0 * scale * weight4[min(lane, last)]);
  store_quad(begin, lane + 16u, end, x1 * scale * weight4[min(lane + 16u, last)]);
  store_quad(begin, lane + 32u, end, x2 * scale * weight4[min(lane + 32u, last)]);
  store_quad(begin, lane + 48u, end, x3 * scale * weight4[min(lane + 48u, last)]);
}

// The d-th vec4 of each of the four rows.
fn store_quads(first: u32, width: u32, d: u32, q: Row, scales: vec4<f32>) {
  if (d < width) {
    let w = weight4[d];
    store_quad(first * width, d, end_of(first, width), q.x0 * scales.x * w);
    store_quad((first + 1u) * width, d, end_of(first + 1u, width), q.x1 * scales.y * w);
    store_quad((first + 2u) * width, d, end_of(first + 2u, width), q.x2 * scales.z * w);
    store_quad((first + 3u) * width, d, end_of(first + 3u, width), q.x3 * scales.w * w);
  }
}

fn scales_of(squares: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(scale_of(squares.x), scale_of(squares.y), scale_of(squares.z),
                   scale_of(squares.w));
}

// Of up to 1024.
fn four_rows(first: u32, thread: u32) {
  let width = params.hidden_size / 4u;
  let r0 = load_row(first, width, thread);
  let r1 = load_row(first + 1u, width, thread);
  let r2 = load_row(first + 2u, width, thread);
  let r3 = load_row(first + 3u, width, thread);
  let scales = scales_of(four_sums(vec4<f32>(squares_of(r0), squares_of(r1), squares_of(r2),
                                             squares_of(r3)), thread));
  store_quads(first, width, thread, Row(r0.x0, r1.x0, r2.x0, r3.x0), scales);
  if (width > 256u) {
    store_quads(first, width, thread + 256u, Row(r0.x1, r1.x1, r2.x1, r3.x1), scales);
    store_quads(first, width, thread + 512u, Row(r0.x2, r1.x2, r2.x2, r3.x2), scales);
    store_quads(first, width, thread + 768u, Row(r0.x3, r1.x3, r2.x3, r3.x3), scales);
  }
}

fn quads_of_rows(first: u32, width: u32, d: u32) -> Row {
  return Row(load_quad(first * width, d, end_of(first, width)),
             load_quad((first + 1u) * width, d, end_of(first + 1u, width)),
             load_quad((first + 2u) * width, d, end_of(first + 2u, width)),
             load_quad((first + 3u) * width, d, end_of(first + 3u, width)));
}

fn four_long_rows(first: u32, thread: u32) {
  let width = params.hidden_size / 4u;
  var sums = vec4<f32>(0.0);
  for (var d = thread; d < width; d += 256u) {
    let q = quads_of_rows(first, width, d);
    sums += vec4<f32>(dot(q.x0, q.x0), dot(q.x1, q.x1), dot(q.x2, q.x2), dot(q.x3, q.x3));
  }
  let scales = scales_of(four_sums(sums, thread));
  for (var d = thread; d < width; d += 256u) {
    store_quads(first, width, d, quads_of_rows(first, width, d), scales);
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.hidden_size / 4u;
  let rows_of_group = select(4u, 16u, width <= 64u);
  let first_row = flat_group(group, groups) * rows_of_group;
  if (first_row >= params.seq_len) {
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
