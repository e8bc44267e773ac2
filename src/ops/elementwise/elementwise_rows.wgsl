// y = f(a) or f(a, b), value by value, over rows that may have gaps. One thread makes WIDTH values; the
// results do not depend on it.
//   OP      'add' 'mul' 'silu' 'gelu_tanh' 'gelu_erf' 'swiglu'
//   INPUTS  1 or 2
//   WIDTH   1, or 4: then firsts, strides and columns count vec4s
//   DENSE   1: no tensor has gaps between rows
//   LIVE    1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  y_first: u32,
  y_stride: u32,
  a_first: u32,
  a_stride: u32,
  b_first: u32,
  b_stride: u32,
  live_first: u32,
}
#if WIDTH == 4
alias Value = vec4<f32>;
alias Int = vec4<i32>;
alias Bits = vec4<u32>;
#else
alias Value = f32;
alias Int = i32;
alias Bits = u32;
#endif

@group(0) @binding(0) var<storage, read_write> y: array<Value>;
@group(0) @binding(1) var<storage, read> a: array<Value>;
#if INPUTS == 2
@group(0) @binding(2) var<storage, read> b: array<Value>;
#endif
#if LIVE
@group(0) @binding(${INPUTS + 1}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${INPUTS + 1 + LIVE}) var<uniform> params: Params;

#if OP == 'silu' || OP == 'swiglu'
#include 'ops/elementwise/silu_value.wgsl'
#endif
#if OP == 'gelu_erf'
#include 'ops/elementwise/normal_tail.wgsl'
fn gelu(x: Value) -> Value {
  let tail = normal_tail(min(abs(x), Value(13.0)));
  return x * select(tail, 1.0 - tail, x > Value(0.0));
}
#endif
#if OP == 'gelu_tanh'
// tanh of large arguments is NaN on some drivers; beyond 15 it is 1 in f32.
fn gelu(x: Value) -> Value {
  let t = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + tanh(clamp(t, Value(-15.0), Value(15.0))));
}
#endif

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
#if DENSE
  if (i >= n_rows * params.n_columns) {
    return;
  }
  let a_at = i;
  let b_at = i;
  let y_at = i;
#else
  let row = i / params.n_columns;
  let column = i % params.n_columns;
  if (row >= n_rows) {
    return;
  }
  let a_at = row * params.a_stride + column;
  let b_at = row * params.b_stride + column;
  let y_at = row * params.y_stride + column;
#endif
  let left = a[params.a_first + a_at];
#if INPUTS == 2
  let right = b[params.b_first + b_at];
#endif
#if OP == 'add'
  let value = left + right;
#endif
#if OP == 'mul'
  let value = left * right;
#endif
#if OP == 'silu'
  let value = silu(left);
#endif
#if OP == 'swiglu'
  let value = silu(left) * right;
#endif
#if OP == 'gelu_tanh' || OP == 'gelu_erf'
  let value = gelu(left);
#endif
  y[params.y_first + y_at] = value;
}
