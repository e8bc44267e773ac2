// y = x w^T (+ bias) (+ residual) for one row of x. A workgroup makes eight values of y, each with 32
// threads: a thread takes every 32nd group of four products, then a tree over the threads.
//   WEIGHT             as in weight_four.wgsl
//   WIDTH              4: x is addressed as vec4s, and x_first counts them; else 1
//   BIAS RESIDUAL      1: bindings that are there
//   LIVE               1: nothing is done where live[live_first] is 0
struct Params {
  n_columns: u32,
  depth: u32,
  y_first: u32,
  x_first: u32,
  w_first_byte: u32,
  w_row_bytes: u32,
  bias_first: u32,
  residual_first: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
#if WIDTH == 4
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(1) var<storage, read> x: array<f32>;
#endif
@group(0) @binding(2) var<storage, read> weights: array<u32>;
#if BIAS
@group(0) @binding(3) var<storage, read> bias: array<f32>;
#endif
#if RESIDUAL
@group(0) @binding(${3 + BIAS}) var<storage, read> residual: array<f32>;
#endif
#if LIVE
@group(0) @binding(${3 + BIAS + RESIDUAL}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + BIAS + RESIDUAL + LIVE}) var<uniform> params: Params;

#include 'ops/quantize/weight_four.wgsl'

var<workgroup> sums: array<f32, 256>;

fn x_four(i: u32) -> vec4<f32> {
#if WIDTH == 4
  return x[params.x_first + i];
#else
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < params.depth) {
    result[${k}] = x[params.x_first + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  if (live[params.live_first] == 0u) {
    return;
  }
#endif
  let column = (group.y * n_groups.x + group.x) * 8u + thread / 32u;
  let lane = thread % 32u;
  var sum = vec4<f32>(0.0);
  if (column < params.n_columns) {
    let row = params.w_first_byte + column * params.w_row_bytes;
    let n_fours = (params.depth + 3u) / 4u;
    for (var i = lane; i < n_fours; i += 32u) {
      sum += x_four(i) * weight_four(row, i, params.depth);
    }
  }
  sums[thread] = (sum.x + sum.y) + (sum.z + sum.w);
  workgroupBarrier();
  for (var half = 16u; half > 0u; half >>= 1u) {
    if (lane < half) {
      sums[thread] += sums[thread + half];
    }
    workgroupBarrier();
  }
  if (lane == 0u && column < params.n_columns) {
    var value = sums[thread];
#if BIAS
    value += bias[params.bias_first + column];
#endif
#if RESIDUAL
    value += residual[params.residual_first + column];
#endif
    y[params.y_first + column] = value;
  }
}
