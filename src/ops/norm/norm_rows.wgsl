// y = x / sqrt(mean(x^2) + eps) * weight, or (x - mean) / sqrt(variance + eps) * weight + bias, row by
// row. A team of threads takes a row, several teams a workgroup; each thread has every TEAM-th group
// of four values. WIDTH only says how the four are read: the order of the sums is the same.
//   KIND   'rms' 'layer'
//   BIAS   1: of 'layer'
//   WIDTH  4: addresses are multiples of four values, and firsts and strides count vec4s; else 1
//   LIVE   1: rows from live[live_first] on are not touched
//   TEAM   16, 64 or 256 threads
//   LONG   0: a row has at most 16 TEAM values and stays in registers; 1: it is read again
struct Params {
  n_rows: u32,
  d: u32,
  eps: f32,
  live_first: u32,
  y_first: u32,
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
  weight_first: u32,
  bias_first: u32,
}
#if WIDTH == 4
alias Value = vec4<f32>;
#else
alias Value = f32;
#endif

@group(0) @binding(0) var<storage, read_write> y: array<Value>;
@group(0) @binding(1) var<storage, read> x: array<Value>;
@group(0) @binding(2) var<storage, read> weight: array<Value>;
#if BIAS
@group(0) @binding(3) var<storage, read> bias: array<Value>;
#endif
#if LIVE
@group(0) @binding(${3 + BIAS}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + BIAS + LIVE}) var<uniform> params: Params;

#include 'ops/team.wgsl'

// Values 4 i to 4 i + 3 of the row that starts at `row`; zeros from value `end` on.
fn four_of_x(row: u32, i: u32, end: u32) -> vec4<f32> {
#if WIDTH == 4
  return select(vec4<f32>(0.0), x[select(0u, row + i, 4u * i < end)], 4u * i < end);
#else
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < end) {
    result[${k}] = x[row + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}

#if KIND == 'layer'
// What lies in the row, less the mean.
fn centred(four: vec4<f32>, mean: f32, i: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(0.0), four - mean,
                vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(end));
}
#endif

fn store_four(row: u32, i: u32, end: u32, four: vec4<f32>) {
#if WIDTH == 4
  if (4u * i < end) {
#if BIAS
    y[row + i] = fma(four, weight[params.weight_first + i], bias[params.bias_first + i]);
#else
    y[row + i] = four * weight[params.weight_first + i];
#endif
  }
#else
#for k in 0..4
  if (4u * i + ${k}u < end) {
    let e = 4u * i + ${k}u;
#if BIAS
    y[row + e] = fma(four[${k}], weight[params.weight_first + e], bias[params.bias_first + e]);
#else
    y[row + e] = four[${k}] * weight[params.weight_first + e];
#endif
  }
#endfor
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let first_row = (group.y * n_groups.x + group.x) * ${256 / TEAM}u;
  if (first_row >= n_rows) {  // the whole workgroup
    return;
  }
  let row = first_row + thread / ${TEAM}u;
  let lane = thread % ${TEAM}u;
  let x_row = params.x_first + row * params.x_stride;
  let y_row = params.y_first + row * params.y_stride;
  let end = select(0u, params.d, row < n_rows);
  let n_values = f32(params.d);
#if LONG
  let n_fours = (params.d + 3u) / 4u;
#if KIND == 'layer'
  var sum = vec4<f32>(0.0);
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
    sum += four_of_x(x_row, i, end);
  }
  let mean = team_sum(sum_of(sum), thread) / n_values;
#endif
  var squares = vec4<f32>(0.0);
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
#if KIND == 'layer'
    let four = centred(four_of_x(x_row, i, end), mean, i, end);
#else
    let four = four_of_x(x_row, i, end);
#endif
    squares += four * four;
  }
  let scale = inverseSqrt(team_sum(sum_of(squares), thread) / n_values + params.eps);
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
#if KIND == 'layer'
    store_four(y_row, i, end, (four_of_x(x_row, i, end) - mean) * scale);
#else
    store_four(y_row, i, end, four_of_x(x_row, i, end) * scale);
#endif
  }
#else
#for j in 0..4
  var x${j} = four_of_x(x_row, lane + ${j * TEAM}u, end);
#endfor
#if KIND == 'layer'
  let mean = team_sum(sum_of((x0 + x1) + (x2 + x3)), thread) / n_values;
#for j in 0..4
  x${j} = centred(x${j}, mean, lane + ${j * TEAM}u, end);
#endfor
#endif
  let squares = (x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3);
  let scale = inverseSqrt(team_sum(sum_of(squares), thread) / n_values + params.eps);
#for j in 0..4
  store_four(y_row, lane + ${j * TEAM}u, end, x${j} * scale);
#endfor
#endif
}
