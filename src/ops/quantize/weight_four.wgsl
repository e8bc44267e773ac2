// To be included: four neighbouring values of a row of weights in any place of a buffer. Rows of all
// storage types are bytes that start at an even byte (tensor/blocks.hpp has the block formats).
//   WEIGHT   the storage type's name: 'f32' 'f16' 'bf16' 'q8_0' 'q4_k' ...
// The including file declares weights: array<u32>.

// The four bytes at byte b, which need not be a multiple of four. At an odd word it reads the next
// one too, which holds bytes of the same four.
fn word_at(b: u32) -> u32 {
  let word = weights[b / 4u];
  if ((b & 2u) == 0u) {
    return word;
  }
  return (word >> 16u) | (weights[b / 4u + 1u] << 16u);
}
fn half_at(b: u32) -> u32 {
  return (weights[b / 4u] >> (8u * (b & 2u))) & 0xffffu;
}

#if WEIGHT == 'q2_k' || WEIGHT == 'q3_k' || WEIGHT == 'q4_k' || WEIGHT == 'q5_k' || WEIGHT == 'q6_k'
fn byte_at(b: u32) -> u32 {
  return (weights[b / 4u] >> (8u * (b & 3u))) & 0xffu;
}
#endif
#if WEIGHT == 'q4_k' || WEIGHT == 'q5_k'
// Scale and minimum of sub-block s (0 to 7) out of the 12 bytes at byte b.
fn six_bit_pair(b: u32, s: u32) -> vec2<f32> {
  let low = byte_at(b + s);
  let high = byte_at(b + 4u + s);
  if (s < 4u) {
    return vec2<f32>(vec2<u32>(low, high) & vec2<u32>(63u));
  }
  let top = (vec2<u32>(byte_at(b + s - 4u), low) >> vec2<u32>(6u)) << vec2<u32>(4u);
  return vec2<f32>(((vec2<u32>(high) >> vec2<u32>(0u, 4u)) & vec2<u32>(15u)) | top);
}
#endif

// Values 4 i to 4 i + 3 of the row of n values that starts at byte `row`; zeros behind its end.
fn weight_four(row: u32, i: u32, n: u32) -> vec4<f32> {
#if WEIGHT == 'f32'
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < n) {
    result[${k}] = bitcast<f32>(weights[row / 4u + 4u * i + ${k}u]);
  }
#endfor
  return result;
#endif
#if WEIGHT == 'f16' || WEIGHT == 'bf16'
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < n) {
#if WEIGHT == 'f16'
    result[${k}] = unpack2x16float(half_at(row + 8u * i + ${2 * k}u)).x;
#else
    result[${k}] = bitcast<f32>(half_at(row + 8u * i + ${2 * k}u) << 16u);
#endif
  }
#endfor
  return result;
#endif
#if WEIGHT == 'q4_0'
  let block = row + (i / 8u) * 18u;
  let q = word_at(block + 2u + 4u * (i % 4u)) >> (i & 4u);
  let d = unpack2x16float(half_at(block)).x;
  return d * (vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) - 8.0);
#endif
#if WEIGHT == 'q4_1'
  let block = row + (i / 8u) * 20u;
  let q = word_at(block + 4u + 4u * (i % 4u)) >> (i & 4u);
  let d_m = unpack2x16float(word_at(block));
  return d_m.x * vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) + d_m.y;
#endif
#if WEIGHT == 'q8_0'
  let block = row + (i / 8u) * 34u;
  let q = bitcast<i32>(word_at(block + 2u + 4u * (i % 8u)));
  let d = unpack2x16float(half_at(block)).x;
  return d * vec4<f32>((vec4<i32>(q) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
#endif
#if WEIGHT == 'q5_0' || WEIGHT == 'q5_1'
#if WEIGHT == 'q5_0'
  let block = row + (i / 8u) * 22u;
  let bits = block + 2u;
#else
  let block = row + (i / 8u) * 24u;
  let bits = block + 4u;
#endif
  let low = word_at(bits + 4u + 4u * (i % 4u)) >> (i & 4u);
  let fifth = word_at(bits) >> (4u * (i % 8u));
  let q = ((vec4<u32>(low) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) |
          (((vec4<u32>(fifth) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) << vec4<u32>(4u));
#if WEIGHT == 'q5_0'
  return unpack2x16float(half_at(block)).x * (vec4<f32>(q) - 16.0);
#else
  let d_m = unpack2x16float(word_at(block));
  return d_m.x * vec4<f32>(q) + d_m.y;
#endif
#endif
#if WEIGHT == 'q2_k'
  let block = row + (i / 64u) * 84u;
  let v = 4u * (i % 64u);
  let q = word_at(block + 16u + 32u * (v / 128u) + v % 32u) >> (2u * (v % 128u / 32u));
  let scale = byte_at(block + v / 16u);
  let d_m = unpack2x16float(word_at(block + 80u)) * vec2<f32>(vec2<u32>(scale & 15u, scale >> 4u));
  return d_m.x * vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u)) - d_m.y;
#endif
#if WEIGHT == 'q3_k'
  let block = row + (i / 64u) * 110u;
  let v = 4u * (i % 64u);
  let low = word_at(block + 32u + 32u * (v / 128u) + v % 32u) >> (2u * (v % 128u / 32u));
  let third = word_at(block + v % 32u) >> (v / 32u);
  let q = ((vec4<u32>(low) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u)) |
          (((vec4<u32>(third) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(1u)) << vec4<u32>(2u));
  let s = v / 16u;
  let scale = ((byte_at(block + 96u + s % 8u) >> (s / 8u * 4u)) & 15u) |
              (((byte_at(block + 104u + s % 4u) >> (s / 4u * 2u)) & 3u) << 4u);
  return unpack2x16float(half_at(block + 108u)).x * (f32(scale) - 32.0) * (vec4<f32>(q) - 4.0);
#endif
#if WEIGHT == 'q4_k'
  let block = row + (i / 64u) * 144u;
  let s = i % 64u / 8u;
  let q = word_at(block + 16u + 32u * (s / 2u) + 4u * (i % 8u)) >> (4u * (s % 2u));
  let d_m = unpack2x16float(word_at(block)) * six_bit_pair(block + 4u, s);
  return d_m.x * vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) - d_m.y;
#endif
#if WEIGHT == 'q5_k'
  let block = row + (i / 64u) * 176u;
  let s = i % 64u / 8u;
  let low = word_at(block + 48u + 32u * (s / 2u) + 4u * (i % 8u)) >> (4u * (s % 2u));
  let fifth = word_at(block + 16u + 4u * (i % 8u)) >> s;
  let q = ((vec4<u32>(low) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) |
          (((vec4<u32>(fifth) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(1u)) << vec4<u32>(4u));
  let d_m = unpack2x16float(word_at(block)) * six_bit_pair(block + 4u, s);
  return d_m.x * vec4<f32>(q) - d_m.y;
#endif
#if WEIGHT == 'q6_k'
  let block = row + (i / 64u) * 210u;
  let v = 4u * (i % 64u);
  let half = v / 128u;
  let quarter = v % 128u / 32u;
  let low = word_at(block + 64u * half + 32u * (quarter % 2u) + v % 32u) >> (quarter / 2u * 4u);
  let high = word_at(block + 128u + 32u * half + v % 32u) >> (2u * quarter);
  let q = ((vec4<u32>(low) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) |
          (((vec4<u32>(high) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u)) << vec4<u32>(4u));
  let scale = bitcast<i32>(byte_at(block + 192u + v / 16u) << 24u) >> 24u;
  return unpack2x16float(half_at(block + 208u)).x * f32(scale) * (vec4<f32>(q) - 32.0);
#endif
}
