// Rows of any storage type to f32, on one instruction set. Bit for bit what dequantize() of
// tensor/convert.hpp gives: the same roundings in the same order.
//
// Included by kernels of gather_rows, convert and matmul. Blocks lie at any address.

#pragma once

#include "cpu/simd.hpp"
#include "ops/quantize/storage.hpp"
#include "tensor/blocks.hpp"

namespace tessera::TESSERA_ISA {
namespace {

// Each decode_block() works on 16 values at a time: a multiple of every tier's lanes, and the
// smallest sub-block of any format.
static_assert(16 % kLanes == 0);

/// Lane i of the vector at value `first` tells bit `first + i` of `bits` (0 or -1).
inline IVec bit_mask(uint32_t bits, int first) {
  IVec lane_bit;
  for (int i = 0; i < kLanes; ++i) lane_bit[i] = static_cast<int32_t>(1u << i);
  return (splat_int(static_cast<int32_t>(bits >> first)) & lane_bit) != 0;
}

inline void decode_block(const BlockQ4_0& b, float* y) {
  const Vec d = splat(f16_bits_to_f32(b.d));
  for (int i = 0; i < 16; i += kLanes) {
    const IVec bytes = load_u8(b.qs + i);
    store(y + i, d * to_float((bytes & 15) - 8));
    store(y + i + 16, d * to_float((bytes >> 4) - 8));
  }
}

inline void decode_block(const BlockQ4_1& b, float* y) {
  const Vec d = splat(f16_bits_to_f32(b.d)), m = splat(f16_bits_to_f32(b.m));
  for (int i = 0; i < 16; i += kLanes) {
    const IVec bytes = load_u8(b.qs + i);
    store(y + i, d * to_float(bytes & 15) + m);
    store(y + i + 16, d * to_float(bytes >> 4) + m);
  }
}

inline void decode_block(const BlockQ5_0& b, float* y) {
  const Vec d = splat(f16_bits_to_f32(b.d));
  uint32_t high;
  memcpy(&high, b.qh, sizeof high);
  for (int i = 0; i < 16; i += kLanes) {
    const IVec bytes = load_u8(b.qs + i);
    store(y + i, d * to_float(((bytes & 15) | (bit_mask(high, i) & 16)) - 16));
    store(y + i + 16, d * to_float(((bytes >> 4) | (bit_mask(high, i + 16) & 16)) - 16));
  }
}

inline void decode_block(const BlockQ5_1& b, float* y) {
  const Vec d = splat(f16_bits_to_f32(b.d)), m = splat(f16_bits_to_f32(b.m));
  uint32_t high;
  memcpy(&high, b.qh, sizeof high);
  for (int i = 0; i < 16; i += kLanes) {
    const IVec bytes = load_u8(b.qs + i);
    store(y + i, d * to_float((bytes & 15) | (bit_mask(high, i) & 16)) + m);
    store(y + i + 16, d * to_float((bytes >> 4) | (bit_mask(high, i + 16) & 16)) + m);
  }
}

inline void decode_block(const BlockQ8_0& b, float* y) {
  const Vec d = splat(f16_bits_to_f32(b.d));
  for (int i = 0; i < 32; i += kLanes) store(y + i, d * to_float(load_i8(b.qs + i)));
}

inline void decode_block(const BlockQ2_K& b, float* y) {
  const float d = f16_bits_to_f32(b.d), dmin = f16_bits_to_f32(b.dmin);
  for (int i = 0; i < 256; i += 16) {
    const int half = i / 128, pair = i % 128 / 32, lane = i % 32;
    const Vec scale = splat(d * static_cast<float>(b.scales[i / 16] & 15));
    const Vec minimum = splat(dmin * static_cast<float>(b.scales[i / 16] >> 4));
    for (int j = 0; j < 16; j += kLanes) {
      const IVec q = (load_u8(b.qs + 32 * half + lane + j) >> (2 * pair)) & 3;
      store(y + i + j, scale * to_float(q) - minimum);
    }
  }
}

/// Scale `i` (0..15) of the 12 packed bytes of Q3_K.
inline int q3_k_scale(const uint8_t (&packed)[12], int i) {
  const int low = (packed[i % 8] >> i / 8 * 4) & 15, high = (packed[8 + i % 4] >> i / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

inline void decode_block(const BlockQ3_K& b, float* y) {
  const float d = f16_bits_to_f32(b.d);
  for (int i = 0; i < 256; i += 16) {
    const int half = i / 128, pair = i % 128 / 32, lane = i % 32;
    const Vec scale = splat(d * static_cast<float>(q3_k_scale(b.scales, i / 16)));
    for (int j = 0; j < 16; j += kLanes) {
      const IVec third = (load_u8(b.hmask + lane + j) >> (4 * half + pair)) & 1;
      const IVec q = (load_u8(b.qs + 32 * half + lane + j) >> (2 * pair)) & 3;
      store(y + i + j, scale * to_float(q + third * 4 - 4));
    }
  }
}

/// Scale and minimum `j` (0..7) of the 12 packed bytes that Q4_K and Q5_K share.
inline void six_bit_pair(const uint8_t (&packed)[12], int j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *minimum = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    *minimum = (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
  }
}

inline void decode_block(const BlockQ4_K& b, float* y) {
  const float d = f16_bits_to_f32(b.d), dmin = f16_bits_to_f32(b.dmin);
  for (int s = 0; s < 8; ++s) {
    int scale, minimum;
    six_bit_pair(b.scales, s, &scale, &minimum);
    const Vec factor = splat(d * static_cast<float>(scale));
    const Vec offset = splat(dmin * static_cast<float>(minimum));
    for (int j = 0; j < 32; j += kLanes) {
      const IVec q = (load_u8(b.qs + 32 * (s / 2) + j) >> (4 * (s % 2))) & 15;
      store(y + 32 * s + j, factor * to_float(q) - offset);
    }
  }
}

inline void decode_block(const BlockQ5_K& b, float* y) {
  const float d = f16_bits_to_f32(b.d), dmin = f16_bits_to_f32(b.dmin);
  for (int s = 0; s < 8; ++s) {
    int scale, minimum;
    six_bit_pair(b.scales, s, &scale, &minimum);
    const Vec factor = splat(d * static_cast<float>(scale));
    const Vec offset = splat(dmin * static_cast<float>(minimum));
    for (int j = 0; j < 32; j += kLanes) {
      const IVec low = (load_u8(b.qs + 32 * (s / 2) + j) >> (4 * (s % 2))) & 15;
      const IVec fifth = (load_u8(b.qh + j) >> s) & 1;
      store(y + 32 * s + j, factor * to_float(low + fifth * 16) - offset);
    }
  }
}

inline void decode_block(const BlockQ6_K& b, float* y) {
  const float d = f16_bits_to_f32(b.d);
  for (int i = 0; i < 256; i += 16) {
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const Vec scale = splat(d * static_cast<float>(b.scales[i / 16]));
    for (int j = 0; j < 16; j += kLanes) {
      const IVec byte = load_u8(b.ql + 64 * half + 32 * (quarter % 2) + lane + j);
      const IVec low = (byte >> (4 * (quarter / 2))) & 15;
      const IVec high = (load_u8(b.qh + 32 * half + lane + j) >> (2 * quarter)) & 3;
      store(y + i + j, scale * to_float(low + high * 16 - 32));
    }
  }
}

template <typename Block>
inline void decode_blocks(const unsigned char* source, float* target, int64_t n, int block_size) {
  for (int64_t i = 0; i < n; i += block_size, source += sizeof(Block)) {
    // In place: a copy's stores and the loads of its fields differ in width, which stalls.
    decode_block(*reinterpret_cast<const Block*>(source), target + i);
  }
}

template <Vec (*load_halves)(const void*), float (*widen)(uint16_t)>
inline void decode_halves(const unsigned char* source, float* target, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(target + i, load_halves(source + 2 * i));
  for (; i < n; ++i) {
    uint16_t bits;
    memcpy(&bits, source + 2 * i, sizeof bits);
    target[i] = widen(bits);
  }
}

/// `n` values of a row, a multiple of the type's block size, from any address to f32.
void decode_row(Storage type, const void* source, float* target, int64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(source);
  switch (type) {
    case Storage::kF32:
      if (n > 0) memcpy(target, source, static_cast<size_t>(n) * sizeof(float));
      return;
    case Storage::kF16:
      return decode_halves<load_f16, f16_bits_to_f32>(bytes, target, n);
    case Storage::kBF16:
      return decode_halves<load_bf16, bf16_bits_to_f32>(bytes, target, n);
    case Storage::kQ4_0:
      return decode_blocks<BlockQ4_0>(bytes, target, n, 32);
    case Storage::kQ4_1:
      return decode_blocks<BlockQ4_1>(bytes, target, n, 32);
    case Storage::kQ5_0:
      return decode_blocks<BlockQ5_0>(bytes, target, n, 32);
    case Storage::kQ5_1:
      return decode_blocks<BlockQ5_1>(bytes, target, n, 32);
    case Storage::kQ8_0:
      return decode_blocks<BlockQ8_0>(bytes, target, n, 32);
    case Storage::kQ2_K:
      return decode_blocks<BlockQ2_K>(bytes, target, n, 256);
    case Storage::kQ3_K:
      return decode_blocks<BlockQ3_K>(bytes, target, n, 256);
    case Storage::kQ4_K:
      return decode_blocks<BlockQ4_K>(bytes, target, n, 256);
    case Storage::kQ5_K:
      return decode_blocks<BlockQ5_K>(bytes, target, n, 256);
    case Storage::kQ6_K:
      return decode_blocks<BlockQ6_K>(bytes, target, n, 256);
  }
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
