// To be included once, with weight_eight_load.wgsl for every binding of weights: eight values of a
// row of weights that one thread decodes and multiplies at a time, two runs of four.
//   WEIGHT   the storage type's name
// A row of n values has ceil(n / 8) such eights. Which values they are follows from the format: those
// that share a word of memory, so that neighbouring threads read neighbouring words.

// Codes as f32, to be scaled and shifted by what their block says. Plain types are values already.
struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
  scale: vec2<f32>,    // of low and high
  minimum: vec2<f32>,  // to be added to scaled codes: formats with a minimum
}

// Eight u has groups of four low and high: values 4 i to 4 i + 3 of the row.
fn fours_of(u: u32) -> vec2<u32> {
#if WEIGHT == 'q4_0' || WEIGHT == 'q4_1' || WEIGHT == 'q5_0' || WEIGHT == 'q5_1'
  let i = (u / 4u) * 8u + u % 4u;
  return vec2<u32>(i, i + 4u);
#else
#if WEIGHT == 'q4_k' || WEIGHT == 'q5_k'
  let i = (u / 8u) * 16u + u % 8u;
  return vec2<u32>(i, i + 8u);
#else
#if WEIGHT == 'q6_k'
  let i = (u / 16u) * 32u + u % 16u;
  return vec2<u32>(i, i + 16u);
#else
#if WEIGHT == 'q2_k' || WEIGHT == 'q3_k'
  // Block, half of it, pair of bits (the high four have the second next pair), word.
  let i = (u / 32u) * 64u + (u % 16u / 8u) * 32u + (u % 32u / 16u) * 8u + u % 8u;
  return vec2<u32>(i, i + 16u);
#else
  return vec2<u32>(2u * u, 2u * u + 1u);
#endif
#endif
#endif
#endif
}

// The nibbles of a word as they lie there: low ones of its four bytes, then high ones. A nibble
// that starts at bit s becomes the lowest bits of the mantissa of 2^(23 - s), where the last one is
// worth 2^-s: one operation puts it there and one takes 2^(23 - s) away, both exact.
fn low_nibbles(word: u32, offset: f32) -> vec4<f32> {
  let words = vec4<u32>(word, word, word >> 16u, word >> 16u);
  return bitcast<vec4<f32>>((words & vec4<u32>(0x00fu, 0xf00u, 0x00fu, 0xf00u)) |
                            vec4<u32>(0x4b000000u, 0x47000000u, 0x4b000000u, 0x47000000u)) -
         (vec4<f32>(8388608.0, 32768.0, 8388608.0, 32768.0) + offset);
}
fn high_nibbles(word: u32, offset: f32) -> vec4<f32> {
  let words = vec4<u32>(word, word, word >> 16u, word >> 16u);
  return bitcast<vec4<f32>>((words & vec4<u32>(0x0f0u, 0xf000u, 0x0f0u, 0xf000u)) |
                            vec4<u32>(0x49000000u, 0x45000000u, 0x49000000u, 0x45000000u)) -
         (vec4<f32>(524288.0, 2048.0, 524288.0, 2048.0) + offset);
}
// The same for bytes.
fn bytes_minus(word: u32, offset: f32) -> vec4<f32> {
  let words = vec4<u32>(word, word, word >> 16u, word >> 16u);
  return bitcast<vec4<f32>>((words & vec4<u32>(0x00ffu, 0xff00u, 0x00ffu, 0xff00u)) |
                            vec4<u32>(0x4b000000u, 0x47000000u, 0x4b000000u, 0x47000000u)) -
         (vec4<f32>(8388608.0, 32768.0, 8388608.0, 32768.0) + offset);
}

// A fixed chain: the same bits wherever it is written.
fn dot_four(a: vec4<f32>, b: vec4<f32>) -> f32 {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)));
}
fn sum_four(a: vec4<f32>) -> f32 {
  return (a.x + a.y) + (a.z + a.w);
}

// sum + the product of eight weights with the values of x at the same places.
fn add_product(sum: f32, w: Eight, x_low: vec4<f32>, x_high: vec4<f32>) -> f32 {
#if WEIGHT == 'f32' || WEIGHT == 'f16' || WEIGHT == 'bf16'
  return sum + (dot_four(w.low, x_low) + dot_four(w.high, x_high));
#else
#if WEIGHT == 'q4_0' || WEIGHT == 'q5_0' || WEIGHT == 'q8_0'
  return fma(w.scale.x, dot_four(w.low, x_low) + dot_four(w.high, x_high), sum);
#else
#if WEIGHT == 'q4_1' || WEIGHT == 'q5_1'
  return fma(w.minimum.x, sum_four(x_low) + sum_four(x_high),
             fma(w.scale.x, dot_four(w.low, x_low) + dot_four(w.high, x_high), sum));
#else
#if WEIGHT == 'q3_k' || WEIGHT == 'q6_k'
  return fma(w.scale.y, dot_four(w.high, x_high), fma(w.scale.x, dot_four(w.low, x_low), sum));
#else
  return fma(w.minimum.y, sum_four(x_high),
             fma(w.minimum.x, sum_four(x_low),
                 fma(w.scale.y, dot_four(w.high, x_high),
                     fma(w.scale.x, dot_four(w.low, x_low), sum))));
#endif
#endif
#endif
#endif
}
