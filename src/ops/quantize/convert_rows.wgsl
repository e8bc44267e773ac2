// y = x in another type. One thread makes four neighbouring values.
//   WEIGHT   type of x, as in weight_four.wgsl
//   TARGET   'f32' 'f16' 'bf16'
//   PAIRS    1: 16-bit values are written two a word; 0: bit by bit, as others may share a word
struct Params {
  n_rows: u32,
  n_columns: u32,
  y_first: u32,
  y_stride: u32,
  x_first_byte: u32,
  x_row_bytes: u32,
}
#if TARGET == 'f32'
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
#else
#if PAIRS
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
#else
@group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;
#endif
#endif
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

#include 'ops/quantize/weight_four.wgsl'
#if TARGET != 'f32'
#include 'ops/quantize/to_half.wgsl'

fn half_of(value: f32) -> u32 {
#if TARGET == 'f16'
  return to_f16(value);
#else
  return to_bf16(value);
#endif
}
#endif

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let n_fours = (params.n_columns + 3u) / 4u;
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let row = i / n_fours;
  let four = i - row * n_fours;
  if (row >= params.n_rows) {
    return;
  }
  let values = weight_four(params.x_first_byte + row * params.x_row_bytes, four, params.n_columns);
  let at = params.y_first + row * params.y_stride + 4u * four;
#if TARGET != 'f32' && PAIRS
#for k in 0..2
  if (4u * four + ${2 * k}u < params.n_columns) {
    y[at / 2u + ${k}u] = half_of(values[${2 * k}]) | (half_of(values[${2 * k + 1}]) << 16u);
  }
#endfor
#else
#for k in 0..4
  if (4u * four + ${k}u < params.n_columns) {
#if TARGET == 'f32'
    y[at + ${k}u] = values[${k}];
#else
    let place = at + ${k}u;
    atomicAnd(&y[place / 2u], 0xffff0000u >> (16u * (place & 1u)));
    atomicOr(&y[place / 2u], half_of(values[${k}]) << (16u * (place & 1u)));
#endif
  }
#endfor
#endif
}
