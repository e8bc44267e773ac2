// Rotates the pairs (2i, 2i + 1) of every head of q and k, in place, by the angle
// (position_offset + t) * base^(-2i / head_dim).
//
// Bindings: q f32[T, Hq d] rw, k f32[T, Hkv d] rw,
//           params { seq_len = T, num_q_heads = Hq, num_kv_heads = Hkv, head_dim = d,
//                    rope_base_bits, position_offset } (24 bytes; base >= 1 as the bits of an f32).
//           d is even.
// Grid: main ceil(T max(Hq, Hkv) (d / 2) / 256); main_vec4 a quarter of it,
// ceil(T max(Hq, Hkv) (d / 2) / 1024), for d divisible by 4 and at most 512. Where that exceeds
// 65,535, dispatch any (x, y, z) whose product is at least as large.
//
// An angle in f32 loses 2^-24 of itself, which is radians at long contexts, and WGSL promises
// little of pow, sin and cos. So angles are counted in turns, as integers of 2^-32 turn: a
// frequency is computed once a workgroup in 32-bit fixed point, its product with the position wraps
// around at whole turns by itself, and what is left goes into polynomials on [-pi/4, pi/4]. The
// angle is right to about 2^-31 turns times the position.

struct Params {
  seq_len: u32,
  num_q_heads: u32,
  num_kv_heads: u32,
  head_dim: u32,
  rope_base_bits: u32,
  position_offset: u32,
}

@group(0) @binding(0) var<storage, read_write> q: array<f32>;
@group(0) @binding(1) var<storage, read_write> k: array<f32>;
@group(0) @binding(0) var<storage, read_write> q4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> k4: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

// Turns per position, in units of 2^-32.
var<workgroup> frequencies: array<u32, 256>;

// The upper half of a 64-bit product.
fn mul_high(a: u32, b: u32) -> u32 {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let low = a0 * b1 + (middle & 0xffffu);
  return a1 * b1 + (middle >> 16u) + (low >> 16u);
}

// 2^(j / 8) in units of 2^-31.
fn exp2_eighth(j: u32) -> u32 {
  let low = select(vec4<u32>(2147483648u, 2341847524u, 2553802834u, 2784941738u),
                   vec4<u32>(3037000500u, 3311872529u, 3611622603u, 3938502376u), j >= 4u);
  let half = select(low.xy, low.zw, (j & 2u) != 0u);
  return select(half.x, half.y, (j & 1u) != 0u);
}

// 2^(x / 2^32) in units of 2^-31: the upper three bits from a table, e^y - 1 for the others.
fn exp2_fixed(x: u32) -> u32 {
  // y = rest * ln 2 < 0.0867, in units of 2^-32.
  let y = mul_high(x & 0x1fffffffu, 2977044472u);
  // e^y - 1 = y (1 + y/2 (1 + y/3 (1 + y/4 (1 + y/5 (1 + y/6))))), the parentheses less their 1.
  var r = mul_high(y, 715827883u);
  r = mul_high(y, 858993459u + mul_high(r, 858993459u));
  r = mul_high(y, 1073741824u + (r >> 2u));
  r = mul_high(y, 1431655765u + mul_high(r, 1431655765u));
  r = mul_high(y, 2147483648u + (r >> 1u));
  let e = y + mul_high(y, r);
  let head = exp2_eighth(x >> 29u);
  return head + mul_high(head, e);
}

// base^(-2i / d) / (2 pi) in units of 2^-32.
fn frequency(i: u32) -> u32 {
  // log2(base) = whole + fraction / 2^32. The built-in logarithm is a first guess of the fraction;
  // the ratio of the mantissa to 2^guess, so close to 1 that its logarithm is linear, corrects it.
  let whole = max(params.rope_base_bits >> 23u, 127u) - 127u;
  let mantissa = (params.rope_base_bits << 8u) | 0x80000000u;
  let guess = u32(clamp(log2(f32(mantissa) / 2147483648.0), 0.0, 0.9999999) * 4294967296.0);
  let power = exp2_fixed(guess);
  let correction =
      i32(f32(bitcast<i32>(mantissa - power)) / f32(power) * (1.442695041 * 4294967296.0));
  var fraction = guess + bitcast<u32>(correction);
  fraction = select(fraction, 0u, correction < 0 && guess < bitcast<u32>(-correction));
  fraction = select(fraction, 0xffffffffu, correction > 0 && fraction < guess);

  // ratio = 2i / d in units of 2^-32, by long division in two digits of 16 bits.
  let digit = ((2u * i) << 16u) / params.head_dim;
  let rest = ((2u * i) << 16u) % params.head_dim;
  let ratio = (digit << 16u) + (rest << 16u) / params.head_dim;

  // exponent = ratio * log2(base), whole part and fraction apart; whole < 128.
  let scaled_low = whole * (ratio & 0xffffu);
  let scaled_high = whole * (ratio >> 16u) + (scaled_low >> 16u);
  let scaled_fraction = (scaled_high << 16u) | (scaled_low & 0xffffu);
  let exponent_fraction = scaled_fraction + mul_high(fraction, ratio);
  let carry = select(0u, 1u, exponent_fraction < scaled_fraction);
  let exponent_whole = (scaled_high >> 16u) + carry;

  // 2^-exponent = 2^(1 - fraction) / 2^(whole + 1); 2^33 / (2 pi) turns the unit into turns.
  let inverse = exp2_fixed(0u - exponent_fraction);
  let shift = exponent_whole + select(1u, 0u, exponent_fraction == 0u);
  let turns = mul_high(inverse, 1367130551u);
  let rounding = select((1u << (min(shift, 31u) - min(shift, 1u))), 0u, shift == 0u);
  return select((turns + rounding) >> min(shift, 31u), 0u, shift > 31u);
}

// (cos, sin) of an angle in units of 2^-32 turns.
fn cos_sin(angle: u32) -> vec2<f32> {
  let quadrant = (angle + 0x20000000u) >> 30u;
  // 2 pi / 2^32; |x| <= pi / 4.
  let x = f32(bitcast<i32>(angle - (quadrant << 30u))) * 1.4629180792671596e-9;
  let x2 = x * x;
  let s = x + x * x2 * (-1.6666667e-1 + x2 * (8.3333333e-3 + x2 * (-1.9841270e-4 +
                                                                   x2 * 2.7557319e-6)));
  let c = 1.0 + x2 * (-0.5 + x2 * (4.1666667e-2 + x2 * (-1.3888889e-3 +
                                                        x2 * (2.4801587e-5 - x2 * 2.7557319e-7))));
  let turned = select(vec2<f32>(c, s), vec2<f32>(-s, c), (quadrant & 1u) != 0u);
  return select(turned, -turned, (quadrant & 2u) != 0u);
}

fn rotate(x: vec2<f32>, by: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(x.x * by.x - x.y * by.y, x.x * by.y + x.y * by.x);
}

fn flat_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let half_dim = params.head_dim / 2u;
  let n_heads = max(params.num_q_heads, params.num_kv_heads);
  let n_pairs = params.seq_len * n_heads * half_dim;
  let index = flat_group(group, groups) * 256u + thread;
  let i = index % half_dim;
  // The threads of a group take consecutive pairs, so every half_dim-th has the same frequency.
  if (thread < half_dim && index < n_pairs) {
    frequencies[thread] = frequency(i);
  }
  workgroupBarrier();
  if (index < n_pairs) {
    let token_head = index / half_dim;
    let t = token_head / n_heads;
    let head = token_head % n_heads;
    let by = cos_sin((params.position_offset + t) * frequencies[thread % half_dim]);
    if (head < params.num_q_heads) {
      let at = (t * params.num_q_heads + head) * params.head_dim + 2u * i;
      let y = rotate(vec2<f32>(q[at], q[at + 1u]), by);
      q[at] = y.x;
      q[at + 1u] = y.y;
    }
    if (head < params.num_kv_heads) {
      let at = (t * params.num_kv_heads + head) * params.head_dim + 2u * i;
      let y = rotate(vec2<f32>(k[at], k[at + 1u]), by);
      k[at] = y.x;
      k[at + 1u] = y.y;
    }
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let width = params.head_dim / 4u;
  let n_heads = max(params.num_q_heads, params.num_kv_heads);
  let n_quads = params.seq_len * n_heads * width;
  if (thread < params.head_dim / 2u) {
    frequencies[thread] = frequency(thread);
  }
  workgroupBarrier();
  let first = flat_group(group, groups) * 512u + thread;
  for (var index = first; index < min(first + 257u, n_quads); index += 256u) {
    let token_head = index / width;
    let i = index % width;
    let t = token_head / n_heads;
    let head = token_head % n_heads;
    let position = params.position_offset + t;
    let by0 = cos_sin(position * frequencies[2u * i]);
    let by1 = cos_sin(position * frequencies[2u * i + 1u]);
    if (head < params.num_q_heads) {
      let at = (t * params.num_q_heads + head) * width + i;
      let x = q4[at];
      q4[at] = vec4<f32>(rotate(x.xy, by0), rotate(x.zw, by1));
    }
    if (head < params.num_kv_heads) {
      let at = (t * params.num_kv_heads + head) * width + i;
      let x = k4[at];
      k4[at] = vec4<f32>(rotate(x.xy, by0), rotate(x.zw, by1));
    }
  }
}
