// To be included for every binding w of weights, behind weight_eight.wgsl: eight${w}(row, u, n) is
// eight u of the row of n values that starts at byte `row`.
//   WEIGHT   the storage type's name
//   ALIGNED  1: rows of plain types start at multiples of 16 bytes and have a multiple of eight values,
//            and weights${w}: array<vec4<u32>>; blocks start at multiples of four bytes.
//            0: rows start at any multiple of two bytes
// weights${w}: array<u32> but for aligned plain types. ALIGNED makes no difference to the bits.
#if ALIGNED && (WEIGHT == 'f32' || WEIGHT == 'f16' || WEIGHT == 'bf16')
fn eight${w}(row: u32, u: u32, n: u32) -> Eight {
#if WEIGHT == 'f32'
  let at = row / 16u + 2u * u;
  return Eight(bitcast<vec4<f32>>(weights${w}[at]), bitcast<vec4<f32>>(weights${w}[at + 1u]),
               vec2<f32>(1.0), vec2<f32>(0.0));
#else
  let words = weights${w}[row / 16u + u];
#if WEIGHT == 'f16'
  return Eight(vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
               vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)), vec2<f32>(1.0),
               vec2<f32>(0.0));
#else
  let even = bitcast<vec4<f32>>(words << vec4<u32>(16u));
  let odd = bitcast<vec4<f32>>(words & vec4<u32>(0xffff0000u));
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w),
               vec2<f32>(1.0), vec2<f32>(0.0));
#endif
#endif
}
#else
// Of the row that starts at byte `row`, from its byte b on: two bytes, four, one. b is the same for all
// rows, so that aligned words are found with one addition each.
fn half${w}(row: u32, b: u32) -> u32 {
#if ALIGNED
  return (weights${w}[row / 4u + b / 4u] >> (8u * (b & 2u))) & 0xffffu;
#else
  return (weights${w}[(row + b) / 4u] >> (8u * ((row + b) & 2u))) & 0xffffu;
#endif
}
fn word${w}(row: u32, b: u32) -> u32 {
#if ALIGNED
  return weights${w}[row / 4u + b / 4u];
#else
  // Without a branch: at an odd half-word the second word is the next one, which holds bytes of these
  // four, else the same one again.
  let odd = ((row + b) >> 1u) & 1u;
  let first = weights${w}[(row + b) / 4u];
  let second = weights${w}[(row + b) / 4u + odd];
  return select(first, (first >> 16u) | (second << 16u), odd == 1u);
#endif
}
fn byte${w}(row: u32, b: u32) -> u32 {
#if ALIGNED
  return (weights${w}[row / 4u + b / 4u] >> (8u * (b & 3u))) & 0xffu;
#else
  return (weights${w}[(row + b) / 4u] >> (8u * ((row + b) & 3u))) & 0xffu;
#endif
}
#if WEIGHT == 'f32' || WEIGHT == 'f16' || WEIGHT == 'bf16'
fn value${w}(row: u32, i: u32, n: u32) -> f32 {
  if (i >= n) {
    return 0.0;
  }
#if WEIGHT == 'f32'
  return bitcast<f32>(weights${w}[row / 4u + i]);
#else
#if WEIGHT == 'f16'
  return unpack2x16float(half${w}(row, 2u * i)).x;
#else
  return bitcast<f32>(half${w}(row, 2u * i) << 16u);
#endif
#endif
}
#endif
#if WEIGHT == 'q4_k' || WEIGHT == 'q5_k'
// Scales and minima of sub-blocks 2 g and 2 g + 1 of the block at byte b of the row: (scale, scale,
// minimum, minimum).
fn scales${w}(row: u32, b: u32, g: u32) -> vec4<f32> {
  let d = unpack2x16float(word${w}(row, b));
  // Sub-blocks 0 to 3 have their six bits in one byte each; 4 to 7 have four bits in the last four
  // bytes and two on top of the bytes of 0 to 3.
  let shift = 16u * (g % 2u);
  let first = (word${w}(row, b + 4u) >> shift) & 0xffffu;
  let second = (word${w}(row, b + 8u) >> shift) & 0xffffu;
  var packed = first | (second << 16u);
  if (g >= 2u) {
    let third = (word${w}(row, b + 12u) >> shift) & 0xffffu;
    packed = ((third & 0x0f0fu) | ((third & 0xf0f0u) << 12u)) | ((packed >> 2u) & 0x30303030u);
  }
  return vec4<f32>(d.xx, -d.yy) * bytes_minus(packed & 0x3f3f3f3fu, 0.0);
}
#endif
fn eight${w}(row: u32, u: u32, n: u32) -> Eight {
#if WEIGHT == 'f32' || WEIGHT == 'f16' || WEIGHT == 'bf16'
  let i = 8u * u;
  return Eight(vec4<f32>(value${w}(row, i, n), value${w}(row, i + 1u, n),
                         value${w}(row, i + 2u, n), value${w}(row, i + 3u, n)),
               vec4<f32>(value${w}(row, i + 4u, n), value${w}(row, i + 5u, n),
                         value${w}(row, i + 6u, n), value${w}(row, i + 7u, n)),
               vec2<f32>(1.0), vec2<f32>(0.0));
#endif
#if WEIGHT == 'q4_0'
  let block = (u / 4u) * 18u;
  let word = word${w}(row, block + 2u + 4u * (u % 4u));
  return Eight(low_nibbles(word, 8.0), high_nibbles(word, 8.0),
               vec2<f32>(unpack2x16float(half${w}(row, block)).x), vec2<f32>(0.0));
#endif
#if WEIGHT == 'q4_1'
  let block = (u / 4u) * 20u;
  let word = word${w}(row, block + 4u + 4u * (u % 4u));
  let d_m = unpack2x16float(word${w}(row, block));
  return Eight(low_nibbles(word, 0.0), high_nibbles(word, 0.0), d_m.xx, d_m.yy);
#endif
#if WEIGHT == 'q5_0' || WEIGHT == 'q5_1'
#if WEIGHT == 'q5_0'
  let block = (u / 4u) * 22u;
  let bits = block + 2u;
#else
  let block = (u / 4u) * 24u;
  let bits = block + 4u;
#endif
  let word = word${w}(row, bits + 4u + 4u * (u % 4u));
  // Fifth bits of the low four and of the high four: the product puts bit i of four into byte i.
  let fifth = word${w}(row, bits) >> (4u * (u % 4u));
  let low = (word & 0x0f0f0f0fu) | ((((fifth & 15u) * 0x00204081u) & 0x01010101u) << 4u);
  let high = ((word >> 4u) & 0x0f0f0f0fu) |
             (((((fifth >> 16u) & 15u) * 0x00204081u) & 0x01010101u) << 4u);
#if WEIGHT == 'q5_0'
  return Eight(bytes_minus(low, 16.0), bytes_minus(high, 16.0),
               vec2<f32>(unpack2x16float(half${w}(row, block)).x), vec2<f32>(0.0));
#else
  let d_m = unpack2x16float(word${w}(row, block));
  return Eight(bytes_minus(low, 0.0), bytes_minus(high, 0.0), d_m.xx, d_m.yy);
#endif
#endif
#if WEIGHT == 'q8_0'
  let block = (u / 4u) * 34u;
  let words = block + 2u + 8u * (u % 4u);
  // Signed bytes as unsigned ones, 128 more.
  return Eight(bytes_minus(word${w}(row, words) ^ 0x80808080u, 128.0),
               bytes_minus(word${w}(row, words + 4u) ^ 0x80808080u, 128.0),
               vec2<f32>(unpack2x16float(half${w}(row, block)).x), vec2<f32>(0.0));
#endif
#if WEIGHT == 'q2_k'
  let block = (u / 32u) * 84u;
  let pair = u % 32u / 16u;
  let word = word${w}(row, block + 16u + 4u * (u % 16u)) >> (2u * pair);
  let at = block + 8u * (u % 16u / 8u) + 2u * pair + u % 8u / 4u;
  let scales = vec2<u32>(byte${w}(row, at), byte${w}(row, at + 4u));
  let d_m = unpack2x16float(word${w}(row, block + 80u));
  return Eight(bytes_minus(word & 0x03030303u, 0.0), bytes_minus((word >> 4u) & 0x03030303u, 0.0),
               d_m.x * vec2<f32>(scales & vec2<u32>(15u)),
               -d_m.y * vec2<f32>(scales >> vec2<u32>(4u)));
#endif
#if WEIGHT == 'q3_k'
  let block = (u / 32u) * 110u;
  let half = u % 16u / 8u;
  let pair = u % 32u / 16u;
  let word = word${w}(row, block + 32u + 4u * (u % 16u)) >> (2u * pair);
  let third = word${w}(row, block + 4u * (u % 8u)) >> (4u * half + pair);
  let low = (word & 0x03030303u) | ((third & 0x01010101u) << 2u);
  let high = ((word >> 4u) & 0x03030303u) | (((third >> 2u) & 0x01010101u) << 2u);
  // Of sub-blocks s and s + 4, both in one half: low nibbles of the bytes s and s + 4, or high ones.
  let s = 2u * pair + u % 8u / 4u;
  let nibbles = (vec2<u32>(byte${w}(row, block + 96u + s), byte${w}(row, block + 100u + s)) >>
                 vec2<u32>(4u * half)) & vec2<u32>(15u);
  let tops = (vec2<u32>(byte${w}(row, block + 104u + s)) >>
              (vec2<u32>(4u * half) + vec2<u32>(0u, 2u))) & vec2<u32>(3u);
  let scales = vec2<f32>(nibbles | (tops << vec2<u32>(4u))) - 32.0;
  return Eight(bytes_minus(low, 4.0), bytes_minus(high, 4.0),
               unpack2x16float(half${w}(row, block + 108u)).x * scales, vec2<f32>(0.0));
#endif
#if WEIGHT == 'q4_k'
  let block = (u / 32u) * 144u;
  let word = word${w}(row, block + 16u + 4u * (u % 32u));
  let scales = scales${w}(row, block, u % 32u / 8u);
  return Eight(low_nibbles(word, 0.0), high_nibbles(word, 0.0), scales.xy, scales.zw);
#endif
#if WEIGHT == 'q5_k'
  let block = (u / 32u) * 176u;
  let g = u % 32u / 8u;
  let word = word${w}(row, block + 48u + 4u * (u % 32u));
  let fifth = word${w}(row, block + 16u + 4u * (u % 8u)) >> (2u * g);
  let low = (word & 0x0f0f0f0fu) | ((fifth & 0x01010101u) << 4u);
  let high = ((word >> 4u) & 0x0f0f0f0fu) | (((fifth >> 1u) & 0x01010101u) << 4u);
  let scales = scales${w}(row, block, g);
  return Eight(bytes_minus(low, 0.0), bytes_minus(high, 0.0), scales.xy, scales.zw);
#endif
#if WEIGHT == 'q6_k'
  let block = (u / 32u) * 210u;
  let half = u % 32u / 16u;
  let quarter = u % 16u / 8u;
  let word = word${w}(row, block + 4u * (u % 32u));
  let top = word${w}(row, block + 128u + 32u * half + 4u * (u % 8u)) >> (2u * quarter);
  let low = (word & 0x0f0f0f0fu) | ((top & 0x03030303u) << 4u);
  let high = ((word >> 4u) & 0x0f0f0f0fu) | (((top >> 4u) & 0x03030303u) << 4u);
  let at = block + 192u + 8u * half + 2u * quarter + u % 8u / 4u;
  let scales = vec2<f32>(vec2<u32>(byte${w}(row, at), byte${w}(row, at + 4u)) ^ vec2<u32>(128u)) -
               128.0;
  return Eight(bytes_minus(low, 32.0), bytes_minus(high, 32.0),
               unpack2x16float(half${w}(row, block + 208u)).x * scales, vec2<f32>(0.0));
#endif
}
#endif
