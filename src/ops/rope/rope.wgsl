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
// frequency is computed once a workgroup in 32-bit fixed point, its product with the position
// wraps around at whole turns by itself, and what is left goes into polynomials on [-pi/4, pi/4],
// once a token and workgroup where the tokens' angles fit its memory. The angle is right to about
// 2^-31 turns times the position.

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
// (cos, sin) of every frequency, token by token.
var<workgroup> turns: array<vec2<f32>, 512>;

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

// (cos, sin) of frequency i at token t.
fn turn_of(t: u32, i: u32) -> vec2<f32> {
  return cos_sin((params.position_offset + t) * frequencies[i]);
}

// Fills frequencies, which takes head_dim / 2 <= 256, and turns for the tokens from `first` to
// `last`, if those are few enough; whether they are is the same for the whole group. The heads of a
// token share its angles, so most groups need far fewer of them than they have pairs.
fn fill_turns(first: u32, last: u32, thread: u32) -> bool {
  let half_dim = params.head_dim / 2u;
  if (thread < half_dim) {
    frequencies[thread] = frequency(thread);
  }
  workgroupBarrier();
  let n_tokens = last - first + 1u;
  if (n_tokens > 512u || n_tokens * half_dim > 512u) {
    return false;
  }
  for (var e = thread; e < n_tokens * half_dim; e += 256u) {
    turns[e] = turn_of(first + e / half_dim, e % half_dim);
  }
  workgroupBarrier();
  return true;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let half_dim = params.head_dim / 2u;
  let n_heads = max(params.num_q_heads, params.num_kv_heads);
  let n_pairs = params.seq_len * n_heads * half_dim;
  let first = flat_group(group, groups) * 256u;
  if (first >= n_pairs) {
    return;
  }
  let index = min(first + thread, n_pairs - 1u);
  let i = index % half_dim;
  let head = index / half_dim % n_heads;
  let t = index / half_dim / n_heads;
  let has_q = first + thread < n_pairs && head < params.num_q_heads;
  let has_k = first + thread < n_pairs && head < params.num_kv_heads;
  // What is rotated is on its way while angles are computed.
  let q_at = select(0u, (t * params.num_q_heads + head) * params.head_dim + 2u * i, has_q);
  let k_at = select(0u, (t * params.num_kv_heads + head) * params.head_dim + 2u * i, has_k);
  var q_pair = vec2<f32>(0.0);
  var k_pair = vec2<f32>(0.0);
  if (has_q) {
    q_pair = vec2<f32>(q[q_at], q[q_at + 1u]);
  }
  if (has_k) {
    k_pair = vec2<f32>(k[k_at], k[k_at + 1u]);
  }
  var by: vec2<f32>;
  if (half_dim <= 256u) {
    let first_token = first / (n_heads * half_dim);
    let last_token = min(first + 255u, n_pairs - 1u) / (n_heads * half_dim);
    if (fill_turns(first_token, last_token, thread)) {
      by = turns[(t - first_token) * half_dim + i];
    } else {
      by = turn_of(t, i);
    }
  } else {
    by = cos_sin((params.position_offset + t) * frequency(i));
  }
  if (has_q) {
    let y = rotate(q_pair, by);
    q[q_at] = y.x;
    q[q_at + 1u] = y.y;
  }
  if (has_k) {
    let y = rotate(k_pair, by);
    k[k_at] = y.x;
    k[k_at + 1u] = y.y;
  }
}

// Four neighbouring values of a head: two pairs.
struct Quad {
  q_at: u32,
  k_at: u32,
  t: u32,
  i: u32,
  has_q: bool,
  has_k: bool,
}

fn quad_of(index: u32, n_heads: u32, n_quads: u32) -> Quad {
  let width = params.head_dim / 4u;
  let token_head = index / width;
  let i = index - token_head * width;
  let t = token_head / n_heads;
  let head = token_head - t * n_heads;
  let has_q = index < n_quads && head < params.num_q_heads;
  let has_k = index < n_quads && head < params.num_kv_heads;
  return Quad(select(0u, (t * params.num_q_heads + head) * width + i, has_q),
              select(0u, (t * params.num_kv_heads + head) * width + i, has_k), t, i, has_q, has_k);
}

fn rotate_quad(quad: Quad, q_old: vec4<f32>, k_old: vec4<f32>, by0: vec2<f32>, by1: vec2<f32>) {
  if (quad.has_q) {
    q4[quad.q_at] = vec4<f32>(rotate(q_old.xy, by0), rotate(q_old.zw, by1));
  }
  if (quad.has_k) {
    k4[quad.k_at] = vec4<f32>(rotate(k_old.xy, by0), rotate(k_old.zw, by1));
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let half_dim = params.head_dim / 2u;
  let n_heads = max(params.num_q_heads, params.num_kv_heads);
  let per_token = n_heads * (params.head_dim / 4u);
  let n_quads = params.seq_len * per_token;
  let first = flat_group(group, groups) * 512u;
  if (first >= n_quads) {
    return;
  }
  let a = quad_of(first + thread, n_heads, n_quads);
  let b = quad_of(first + thread + 256u, n_heads, n_quads);
  // What is rotated is on its way while angles are computed.
  let q_a = q4[a.q_at];
  let q_b = q4[b.q_at];
  var k_a = vec4<f32>(0.0);
  var k_b = vec4<f32>(0.0);
  if (a.has_k) {
    k_a = k4[a.k_at];
  }
  if (b.has_k) {
    k_b = k4[b.k_at];
  }
  let first_token = first / per_token;
  if (fill_turns(first_token, min(first + 511u, n_quads - 1u) / per_token, thread)) {
    let at_a = select(0u, (a.t - first_token) * half_dim + 2u * a.i, first + thread < n_quads);
    let at_b = select(0u, (b.t - first_token) * half_dim + 2u * b.i,
                      first + thread + 256u < n_quads);
    rotate_quad(a, q_a, k_a, turns[at_a], turns[at_a + 1u]);
    rotate_quad(b, q_b, k_b, turns[at_b], turns[at_b + 1u]);
  } else {
    rotate_quad(a, q_a, k_a, turn_of(a.t, 2u * a.i), turn_of(a.t, 2u * a.i + 1u));
    rotate_quad(b, q_b, k_b, turn_of(b.t, 2u * b.i), turn_of(b.t, 2u * b.i + 1u));
  }
}
