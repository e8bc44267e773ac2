// output[t, d] = (input[t, d] - mean) / sqrt(variance + eps) * weight[d] + bias[d], with the mean
// of the row first and then its population variance, from squared differences.
//
// Bindings: input f32[T, D] r, weight f32[D] r, bias f32[D] r, output f32[T, D] rw,
//           params { seq_len = T, hidden_size = D, eps_bits, 0 } (16 bytes; eps as the bits of an
//           f32).
// Grid: main T; main_vec4 ceil(T / 4), for D divisible by 4. Where that exceeds 65,535, dispatch
// any (x, y, z) whose product is at least as large.
//
// A team of 16, 64 or 256 threads takes a row, so that short rows do not leave most of a workgroup
// idle: the first groups of main's grid then take 16 or 4 rows each, and the others none. Rows of
// up to 4096 values stay in registers, 16 values a thread, all loads under way at once; longer ones
// are read three times.

struct Params {
  seq_len: u32,
  hidden_size: u32,
  eps_bits: u32,
  pad: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
@group(0) @binding(0) var<storage, read> input4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight4: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias4: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> output4: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// Of each thread, then of each part of a team.
var<workgroup> thread_sums: array<f32, 256>;
var<workgroup> part_sums: array<f32, 64>;

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

fn mean_of(sum: f32) -> f32 {
  return sum / f32(params.hidden_size);
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

// What lies in the row, less the mean.
fn centred4(x: vec4<f32>, mean: f32, d: u32, end: u32, team_size: u32) -> vec4<f32> {
  let at = vec4<u32>(d, d + team_size, d + 2u * team_size, d + 3u * team_size);
  return select(vec4<f32>(0.0), x - mean, at < vec4<u32>(end));
}

fn store4(begin: u32, d: u32, end: u32, team_size: u32, y: vec4<f32>) {
  if (d < end) {
    output[begin + d] = fma(y.x, weight[d], bias[d]);
  }
  if (d + team_size < end) {
    output[begin + d + team_size] = fma(y.y, weight[d + team_size], bias[d + team_size]);
  }
  if (d + 2u * team_size < end) {
    output[begin + d + 2u * team_size] =
        fma(y.z, weight[d + 2u * team_size], bias[d + 2u * team_size]);
  }
  if (d + 3u * team_size < end) {
    output[begin + d + 3u * team_size] =
        fma(y.w, weight[d + 3u * team_size], bias[d + 3u * team_size]);
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
    var x0 = load4(begin, lane, end, team_size);
    if (width > step) {
      x1 = load4(begin, lane + step, end, team_size);
      x2 = load4(begin, lane + 2u * step, end, team_size);
      x3 = load4(begin, lane + 3u * step, end, team_size);
    }
    let mean = mean_of(team_sum(sum_of((x0 + x1) + (x2 + x3)), thread, team_size));
    x0 = centred4(x0, mean, lane, end, team_size);
    if (width > step) {
      x1 = centred4(x1, mean, lane + step, end, team_size);
      x2 = centred4(x2, mean, lane + 2u * step, end, team_size);
      x3 = centred4(x3, mean, lane + 3u * step, end, team_size);
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
    var sum = vec4<f32>(0.0);
    for (var d = lane; d < width; d += step) {
      sum += load4(begin, d, end, team_size);
    }
    let mean = mean_of(team_sum(sum_of(sum), thread, team_size));
    var squares = vec4<f32>(0.0);
    for (var d = lane; d < width; d += step) {
      let x = centred4(load4(begin, d, end, team_size), mean, d, end, team_size);
      squares = fma(x, x, squares);
    }
    let scale = scale_of(team_sum(sum_of(squares), thread, team_size));
    for (var d = lane; d < width; d += step) {
      store4(begin, d, end, team_size, (load4(begin, d, end, team_size) - mean) * scale);
    }
  }
}

// As above, in units of vec4.
fn load_quad(begin: u32, d: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(0.0), input4[select(0u, begin + d, d < end)], d < end);
}

fn centred_quad(x: vec4<f32>, mean: f32, d: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(0.0), x - mean, d < end);
}

fn store_quad(begin: u32, d: u32, end: u32, y: vec4<f32>) {
  if (d < end) {
    output4[begin + d] = fma(y, weight4[d], bias4[d]);
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.hidden_size / 4u;
  let team_size = select(select(256u, 64u, width <= 256u), 16u, width <= 64u);
  let n_teams = 256u / team_size;
  // At least the four rows that the grid leaves to a group.
  let first_row = flat_group(group, groups) * max(n_teams, 4u);
  let end_row = min(first_row + max(n_teams, 4u), params.seq_len);
  for (var team_row = first_row; team_row < end_row; team_row += n_teams) {
    let row = team_row + thread / team_size;
    let lane = thread % team_size;
    let begin = row * width;
    let end = select(0u, width, row < params.seq_len);
    if (width <= 4u * team_size) {
      var x0 = load_quad(begin, lane, end);
      var x1 = load_quad(begin, lane + team_size, end);
      var x2 = load_quad(begin, lane + 2u * team_size, end);
      var x3 = load_quad(begin, lane + 3u * team_size, end);
      let mean = mean_of(team_sum(sum_of((x0 + x1) + (x2 + x3)), thread, team_size));
      x0 = centred_quad(x0, mean, lane, end);
      x1 = centred_quad(x1, mean, lane + team_size, end);
      x2 = centred_quad(x2, mean, lane + 2u * team_size, end);
      x3 = centred_quad(x3, mean, lane + 3u * team_size, end);
      let squares = fma(x0, x0, fma(x1, x1, fma(x2, x2, x3 * x3)));
      let scale = scale_of(team_sum(sum_of(squares), thread, team_size));
      store_quad(begin, lane, end, x0 * scale);
      store_quad(begin, lane + team_size, end, x1 * scale);
      store_quad(begin, lane + 2u * team_size, end, x2 * scale);
      store_quad(begin, lane + 3u * team_size, end, x3 * scale);
    } else {
      var sum = vec4<f32>(0.0);
      for (var d = lane; d < width; d += 4u * team_size) {
        sum += (load_quad(begin, d, end) + load_quad(begin, d + team_size, end)) +
               (load_quad(begin, d + 2u * team_size, end) +
                load_quad(begin, d + 3u * team_size, end));
      }
      let mean = mean_of(team_sum(sum_of(sum), thread, team_size));
      var squares = vec4<f32>(0.0);
      for (var d = lane; d < width; d += team_size) {
        let x = centred_quad(load_quad(begin, d, end), mean, d, end);
        squares = fma(x, x, squares);
      }
      let scale = scale_of(team_sum(sum_of(squares), thread, team_size));
      for (var d = lane; d < width; d += team_size) {
        store_quad(begin, d, end, (load_quad(begin, d, end) - mean) * scale);
      }
    }
  }
}
