// To be included: the output of attention, binding 0. WIDTH and HEAD_DIM as in attention_operands.wgsl.
#if WIDTH == 4
@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
#else
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
#endif

fn write_four(token: u32, head: u32, c: u32, x: vec4<f32>) {
  let row = params.y_first + token * params.y_token_stride + head * params.y_head_stride;
#if WIDTH == 4
  y[row + c] = x;
#else
#for n in 0..4
  if (4u * c + ${n}u < ${HEAD_DIM}u) {
    y[row + 4u * c + ${n}u] = x[${n}];
  }
#endfor
#endif
}
