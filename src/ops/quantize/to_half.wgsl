// To be included: f32 to 16 bits, rounded to the nearest, ties to even; NaN stays one.

fn to_f16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size >= 0x47800000u) {  // 2^16 and more
    return sign | select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  }
  if (size >= 0x38800000u) {  // a rounded mantissa may carry into the exponent
    let rebased = size - 0x38000000u;
    return sign | ((rebased + 0xfffu + ((rebased >> 13u) & 1u)) >> 13u);
  }
  let shift = 126u - (size >> 23u);  // subnormals are multiples of 2^-24
  if (shift > 24u) {
    return sign;
  }
  let mantissa = (size & 0x7fffffu) | 0x800000u;
  return sign | ((mantissa + (1u << (shift - 1u)) - 1u + ((mantissa >> shift) & 1u)) >> shift);
}

fn to_bf16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return (bits >> 16u) | 0x40u;
  }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
