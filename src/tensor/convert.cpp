#include "tensor/convert.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "tensor/blocks.hpp"

namespace tessera {

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ff) << 13));
  }
  if (magnitude < 0x400) {  // zero and subnormals: exact multiples of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN stays one, quiet
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  }
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal or zero: adding 0.5 rounds at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {

void decode(const BlockQ4_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((b.qs[i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((b.qs[i] >> 4) - 8);
  }
}

void decode(const BlockQ4_1& b, float* y) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(b.qs[i] & 15) + m;
    y[i + 16] = d * static_cast<float>(b.qs[i] >> 4) + m;
  }
}

/// The 5-bit value `i` (0..31) of a block.
int five_bits(const uint8_t (&qh)[4], const uint8_t (&qs)[16], int i) {
  const int low = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
  return low | ((qh[i / 8] >> (i % 8)) & 1) << 4;
}

void decode(const BlockQ5_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(b.qh, b.qs, i) - 16);
}

void decode(const BlockQ5_1& b, float* y) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(b.qh, b.qs, i)) + m;
}

void decode(const BlockQ8_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(b.qs[i]);
}

void decode(const BlockQ2_K& b, float* y) {
  const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, pair = i % 128 / 32, lane = i % 32;
    const uint8_t scale = b.scales[i / 16];
    const int q = (b.qs[32 * half + lane] >> (2 * pair)) & 3;
    y[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
           dmin * static_cast<float>(scale >> 4);
  }
}

void decode(const BlockQ3_K& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, pair = i % 128 / 32, lane = i % 32, s = i / 16;
    const int low = s < 8 ? b.scales[s] & 15 : b.scales[s - 8] >> 4;
    const int scale = (low | ((b.scales[8 + s % 4] >> (2 * (s / 4))) & 3) << 4) - 32;
    const int third = (b.hmask[lane] >> (4 * half + pair)) & 1;
    const int q = ((b.qs[32 * half + lane] >> (2 * pair)) & 3) - (third ? 0 : 4);
    y[i] = d * static_cast<float>(scale) * static_cast<float>(q);
  }
}

/// Scale and minimum `j` (0..7) of the 12 packed bytes that Q4_K and Q5_K share.
void six_bit_pair(const uint8_t (&packed)[12], int j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *minimum = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    *minimum = (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
  }
}

void decode(const BlockQ4_K& b, float* y) {
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    six_bit_pair(b.scales, j, &scale, &minimum);
    const float d = f16_to_f32(b.d) * static_cast<float>(scale);
    const float m = f16_to_f32(b.dmin) * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = b.qs[32 * (j / 2) + i];
      y[32 * j + i] = d * static_cast<float>(j % 2 ? byte >> 4 : byte & 15) - m;
    }
  }
}

void decode(const BlockQ5_K& b, float* y) {
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    six_bit_pair(b.scales, j, &scale, &minimum);
    const float d = f16_to_f32(b.d) * static_cast<float>(scale);
    const float m = f16_to_f32(b.dmin) * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = b.qs[32 * (j / 2) + i];
      const int q = (j % 2 ? byte >> 4 : byte & 15) | ((b.qh[i] >> j) & 1) << 4;
      y[32 * j + i] = d * static_cast<float>(q) - m;
    }
  }
}

void decode(const BlockQ6_K& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const uint8_t byte = b.ql[64 * half + 32 * (quarter % 2) + lane];
    const int low = quarter < 2 ? byte & 15 : byte >> 4;
    const int q = (low | ((b.qh[32 * half + lane] >> (2 * quarter)) & 3) << 4) - 32;
    y[i] = d * static_cast<float>(b.scales[i / 16]) * static_cast<float>(q);
  }
}

template <typename Block>
void decode_blocks(const void* source, float* target, int64_t n, int block_size) {
  const auto* bytes = static_cast<const unsigned char*>(source);
  for (int64_t i = 0; i < n; i += block_size, bytes += sizeof(Block)) {
    Block block;
    std::memcpy(&block, bytes, sizeof block);  // files give no alignment
    decode(block, target + i);
  }
}

template <typename T, typename Convert>
void decode_plain(const void* source, float* target, int64_t n, Convert convert) {
  const auto* bytes = static_cast<const unsigned char*>(source);
  for (int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value), sizeof value);
    target[i] = convert(value);
  }
}

/// f16 bits of a scale, kept finite.
uint16_t scale_bits(float scale) {
  return f32_to_f16(std::clamp(scale, -65504.0f, 65504.0f));
}

int round_to(float value, int low, int high) {
  return static_cast<int>(
      std::lrint(std::clamp(value, static_cast<float>(low), static_cast<float>(high))));
}

/// The value of largest magnitude, with its sign.
float extreme(const float* x) {
  float best = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(best)) best = x[i];
  }
  return best;
}

// The symmetric 4- and 5-bit formats have one level more below zero than above: the extreme value
// gets it, whatever its sign.
void encode_block(const float* x, BlockQ4_0* b) {
  b->d = scale_bits(extreme(x) / -8);
  const float d = f16_to_f32(b->d), inverse = d != 0 ? 1 / d : 0;
  for (int i = 0; i < 16; ++i) {
    const int low = round_to(x[i] * inverse, -8, 7) + 8;
    const int high = round_to(x[i + 16] * inverse, -8, 7) + 8;
    b->qs[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void encode_block(const float* x, BlockQ4_1* b) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  b->m = scale_bits(*low);
  const float m = f16_to_f32(b->m);
  b->d = scale_bits((*high - m) / 15);
  const float d = f16_to_f32(b->d), inverse = d != 0 ? 1 / d : 0;
  for (int i = 0; i < 16; ++i) {
    b->qs[i] = static_cast<uint8_t>(round_to((x[i] - m) * inverse, 0, 15) |
                                    round_to((x[i + 16] - m) * inverse, 0, 15) << 4);
  }
}

void encode_block(const float* x, BlockQ5_0* b) {
  b->d = scale_bits(extreme(x) / -16);
  const float d = f16_to_f32(b->d), inverse = d != 0 ? 1 / d : 0;
  *b = {.d = b->d, .qh = {}, .qs = {}};
  for (int i = 0; i < 32; ++i) {
    const int q = round_to(x[i] * inverse, -16, 15) + 16;
    b->qs[i % 16] = static_cast<uint8_t>(b->qs[i % 16] | (q & 15) << (i < 16 ? 0 : 4));
    b->qh[i / 8] = static_cast<uint8_t>(b->qh[i / 8] | (q >> 4) << (i % 8));
  }
}

void encode_block(const float* x, BlockQ8_0* b) {
  b->d = scale_bits(std::fabs(extreme(x)) / 127);
  const float d = f16_to_f32(b->d), inverse = d != 0 ? 1 / d : 0;
  for (int i = 0; i < 32; ++i) b->qs[i] = static_cast<int8_t>(round_to(x[i] * inverse, -127, 127));
}

template <typename Block>
void encode_blocks(const float* source, void* target, int64_t n) {
  auto* bytes = static_cast<unsigned char*>(target);
  for (int64_t i = 0; i < n; i += 32, bytes += sizeof(Block)) {
    Block block;
    encode_block(source + i, &block);
    std::memcpy(bytes, &block, sizeof block);
  }
}

}  // namespace

void dequantize(DType dtype, const void* source, float* target, int64_t n) {
  TESSERA_DCHECK(n % info(dtype).block_size == 0);
  switch (dtype) {
    case DType::kF32:
      if (n > 0) std::memcpy(target, source, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kF16:
      return decode_plain<uint16_t>(source, target, n, f16_to_f32);
    case DType::kBF16:
      return decode_plain<uint16_t>(source, target, n, bf16_to_f32);
    case DType::kQ4_0:
      return decode_blocks<BlockQ4_0>(source, target, n, 32);
    case DType::kQ4_1:
      return decode_blocks<BlockQ4_1>(source, target, n, 32);
    case DType::kQ5_0:
      return decode_blocks<BlockQ5_0>(source, target, n, 32);
    case DType::kQ5_1:
      return decode_blocks<BlockQ5_1>(source, target, n, 32);
    case DType::kQ8_0:
      return decode_blocks<BlockQ8_0>(source, target, n, 32);
    case DType::kQ2_K:
      return decode_blocks<BlockQ2_K>(source, target, n, 256);
    case DType::kQ3_K:
      return decode_blocks<BlockQ3_K>(source, target, n, 256);
    case DType::kQ4_K:
      return decode_blocks<BlockQ4_K>(source, target, n, 256);
    case DType::kQ5_K:
      return decode_blocks<BlockQ5_K>(source, target, n, 256);
    case DType::kQ6_K:
      return decode_blocks<BlockQ6_K>(source, target, n, 256);
    default:
      TESSERA_DCHECK(false);
  }
}

bool can_encode(DType dtype) {
  return dtype == DType::kQ4_0 || dtype == DType::kQ4_1 || dtype == DType::kQ5_0 ||
         dtype == DType::kQ8_0;
}

void encode(DType dtype, const float* source, void* target, int64_t n) {
  TESSERA_DCHECK(n % info(dtype).block_size == 0);
  switch (dtype) {
    case DType::kF32:
      if (n > 0) std::memcpy(target, source, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kF16:
    case DType::kBF16:
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(source[i]) : f32_to_bf16(source[i]);
        std::memcpy(static_cast<unsigned char*>(target) + 2 * i, &bits, 2);
      }
      return;
    case DType::kQ4_0:
      return encode_blocks<BlockQ4_0>(source, target, n);
    case DType::kQ4_1:
      return encode_blocks<BlockQ4_1>(source, target, n);
    case DType::kQ5_0:
      return encode_blocks<BlockQ5_0>(source, target, n);
    case DType::kQ8_0:
      return encode_blocks<BlockQ8_0>(source, target, n);
    default:
      TESSERA_DCHECK(false);
  }
}

}  // namespace tessera
