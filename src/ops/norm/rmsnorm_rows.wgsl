// y = x / sqrt(mean(x^2) + eps) * weight, row by row. One workgroup makes one row: each thread sums
// the squares of every 256th group of four values, then a tree over the threads. WIDTH only says how
// the four are read: the order of the sum is the same.
//   WIDTH  4: addresses are multiples of four values, and firsts and strides count vec4s; else 1
//   LIVE   1: rows from live[live_first] on are not touched
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
}
#if WIDTH == 4
alias Value = vec4<f32>;
#else
alias Value = f32;
#endif

@group(0) @binding(0) var<storage, read_write> y: array<Value>;
@group(0) @binding(1) var<storage, read> x: array<Value>;
@group(0) @binding(2) var<storage, read> weight: array<Value>;
#if LIVE
@group(0) @binding(3) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + LIVE}) var<uniform> params: Params;

var<workgroup> sums: array<f32, 256>;

// Values 4 i to 4 i + 3 of the row that starts at first; zeros behind its end.
fn four_of_x(first: u32, i: u32) -> vec4<f32> {
#if WIDTH == 4
  return x[first + i];
#else
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < params.d) {
    result[${k}] = x[first + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let row = group.y * n_groups.x + group.x;
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  if (row >= n_rows) {  // the whole workgroup
    return;
  }
  let n_fours = (params.d + 3u) / 4u;
  let x_row = params.x_first + row * params.x_stride;
  var sum = vec4<f32>(0.0);
  for (var i = thread; i < n_fours; i += 256u) {
    let values = four_of_x(x_row, i);
    sum += values * values;
  }
  sums[thread] = (sum.x + sum.y) + (sum.z + sum.w);
  workgroupBarrier();
  for (var half = 128u; half > 0u; half >>= 1u) {
    if (thread < half) {
      sums[thread] += sums[thread + half];
    }
    workgroupBarrier();
  }
  let scale = inverseSqrt(sums[0] / f32(params.d) + params.eps);
  let y_row = params.y_first + row * params.y_stride;
#if WIDTH == 4
  let n_values = n_fours;
#else
  let n_values = params.d;
#endif
  for (var i = thread; i < n_values; i += 256u) {
    y[y_row + i] = x[x_row + i] * scale * weight[params.weight_first + i];
  }
}
