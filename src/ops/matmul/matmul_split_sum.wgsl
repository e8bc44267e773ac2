// y = the parts of a product whose depth was split, added in order (+ bias) (+ residual). A thread
// makes four neighbouring values.
//   WIDTH          4: y, bias and residual are addressed in fours of values; else 1
//   BIAS RESIDUAL  1: bindings that are there
//   LIVE           1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  n_splits: u32,
  split_stride: u32,  // in fours, like row_stride
  row_stride: u32,
  y_first: u32,
  y_stride: u32,
  bias_first: u32,
  residual_first: u32,
  residual_stride: u32,
  live_first: u32,
}
#if WIDTH == 4
alias Value = vec4<f32>;
#else
alias Value = f32;
#endif
@group(0) @binding(0) var<storage, read_write> y: array<Value>;
@group(0) @binding(1) var<storage, read> parts: array<vec4<f32>>;
#if BIAS
@group(0) @binding(2) var<storage, read> bias: array<Value>;
#endif
#if RESIDUAL
@group(0) @binding(${2 + BIAS}) var<storage, read> residual: array<Value>;
#endif
#if LIVE
@group(0) @binding(${2 + BIAS + RESIDUAL}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${2 + BIAS + RESIDUAL + LIVE}) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let row = i / params.row_stride;
  let four = i % params.row_stride;
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  if (row >= n_rows) {
    return;
  }
  var at = row * params.row_stride + four;
  var sum = parts[at];
  for (var split = 1u; split < params.n_splits; split += 1u) {
    at += params.split_stride;
    sum += parts[at];
  }
#if WIDTH == 4
#if BIAS
  sum += bias[params.bias_first + four];
#endif
#if RESIDUAL
  sum += residual[params.residual_first + row * params.residual_stride + four];
#endif
  y[params.y_first + row * params.y_stride + four] = sum;
#else
#for c in 0..4
  if (4u * four + ${c}u < params.n_columns) {
    let column = 4u * four + ${c}u;
    var value = sum[${c}];
#if BIAS
    value += bias[params.bias_first + column];
#endif
#if RESIDUAL
    value += residual[params.residual_first + row * params.residual_stride + column];
#endif
    y[params.y_first + row * params.y_stride + column] = value;
  }
#endfor
#endif
}
