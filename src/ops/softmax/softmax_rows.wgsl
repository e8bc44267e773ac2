// y = exp(x - max(x)) / sum(exp(x - max(x))), row by row; zeros for a row without a value above
// -3.4e38. A team of threads takes a row, several teams a workgroup; each thread has every TEAM-th
// group of four values. WIDTH only says how the four are read: the order of the sum is the same.
//   WIDTH  4: addresses are multiples of four values, and firsts and strides count vec4s; else 1
//   TEAM   16, 64 or 256 threads
//   LONG   0: a row has at most 16 TEAM values and stays in registers; 1: it is read again
struct Params {
  n_rows: u32,
  n_columns: u32,
  y_first: u32,
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
}
#if WIDTH == 4
alias Element = vec4<f32>;
#else
alias Element = f32;
#endif
alias Value = vec4<f32>;
alias Int = vec4<i32>;
alias Bits = vec4<u32>;

@group(0) @binding(0) var<storage, read_write> y: array<Element>;
@group(0) @binding(1) var<storage, read> x: array<Element>;
@group(0) @binding(2) var<uniform> params: Params;

#include 'ops/team.wgsl'
#include 'ops/exp_negative.wgsl'

const kLowest = -3.4e38;

// exp(x - m) for x <= m. The difference of two finite values may overflow, half of it does not;
// results below 2^-126 are zero.
fn exp_below(four: vec4<f32>, m: f32) -> vec4<f32> {
  let difference = 2.0 * max(0.5 * four - 0.5 * m, vec4<f32>(-50.0));
  return select(vec4<f32>(0.0), exp_negative(max(difference, vec4<f32>(-87.336))),
                difference >= vec4<f32>(-87.336));
}

// Values 4 i to 4 i + 3 of the row that starts at `row`; from value `end` on what adds nothing.
fn four_of_x(row: u32, i: u32, end: u32) -> vec4<f32> {
#if WIDTH == 4
  return select(vec4<f32>(kLowest), x[select(0u, row + i, 4u * i < end)], 4u * i < end);
#else
  var result = vec4<f32>(kLowest);
#for k in 0..4
  if (4u * i + ${k}u < end) {
    result[${k}] = x[row + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}

fn store_four(row: u32, i: u32, end: u32, four: vec4<f32>) {
#if WIDTH == 4
  if (4u * i < end) {
    y[row + i] = four;
  }
#else
#for k in 0..4
  if (4u * i + ${k}u < end) {
    y[row + 4u * i + ${k}u] = four[${k}];
  }
#endfor
#endif
}

fn scale_of(largest: f32, sum: f32) -> f32 {
  return select(0.0, 1.0 / sum, largest > kLowest);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let first_row = (group.y * n_groups.x + group.x) * ${256 / TEAM}u;
  if (first_row >= params.n_rows) {  // the whole workgroup
    return;
  }
  let row = first_row + thread / ${TEAM}u;
  let lane = thread % ${TEAM}u;
  let x_row = params.x_first + row * params.x_stride;
  let y_row = params.y_first + row * params.y_stride;
  let end = select(0u, params.n_columns, row < params.n_rows);
#if LONG
  let n_fours = (params.n_columns + 3u) / 4u;
  var highest = vec4<f32>(kLowest);
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
    highest = max(highest, four_of_x(x_row, i, end));
  }
  let largest = team_max(max_of(highest), thread);
  var sum = vec4<f32>(0.0);
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
    sum += exp_below(four_of_x(x_row, i, end), largest);
  }
  let scale = scale_of(largest, team_sum(sum_of(sum), thread));
  for (var i = lane; i < n_fours; i += ${TEAM}u) {
    store_four(y_row, i, end, exp_below(four_of_x(x_row, i, end), largest) * scale);
  }
#else
#for j in 0..4
  var x${j} = four_of_x(x_row, lane + ${j * TEAM}u, end);
#endfor
  let largest = team_max(max_of(max(max(x0, x1), max(x2, x3))), thread);
#for j in 0..4
  x${j} = exp_below(x${j}, largest);
#endfor
  let scale = scale_of(largest, team_sum(sum_of((x0 + x1) + (x2 + x3)), thread));
#for j in 0..4
  store_four(y_row, lane + ${j * TEAM}u, end, x${j} * scale);
#endfor
#endif
}
