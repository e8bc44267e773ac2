// To be included: four neighbouring values of a row of weights in any place of a buffer. Rows of all
// storage types are bytes that start at an even byte (tensor/blocks.hpp has the block formats).
//   WEIGHT   'f32' 'f16' 'bf16' 'q4_0' 'q4_1' 'q8_0'
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
}
