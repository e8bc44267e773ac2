#pragma once

// Vector arithmetic of one tier's width, over GCC/Clang vector types. Included only by `*_cpu.inl`
// files, inside objects compiled for one tier: everything has internal linkage.

#include <stdint.h>
#include <string.h>

#include "cpu/tier.hpp"

#if TESSERA_TIER >= TESSERA_TIER_AVX2
#include <immintrin.h>
#endif

namespace tessera::TESSERA_ISA {
namespace {

#if TESSERA_TIER >= TESSERA_TIER_AVX512
constexpr int kLanes = 16;
#elif TESSERA_TIER == TESSERA_TIER_AVX2
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t IVec __attribute__((vector_size(kLanes * sizeof(int32_t))));

inline Vec splat(float value) { return value - Vec{}; }

inline Vec load(const float* source) {
  Vec result;
  memcpy(&result, source, sizeof result);
  return result;
}

inline void store(float* target, Vec value) { memcpy(target, &value, sizeof value); }

/// a * b + c, fused where the tier has the instruction.
inline Vec fmadd(Vec a, Vec b, Vec c) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_fmadd_ps(a, b, c);
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

inline Vec max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec min(Vec a, Vec b) { return a < b ? a : b; }

/// Sum of the lanes, by halves: the same order in every tier's own width.
inline float reduce_add(Vec value) {
  float lanes[kLanes];
  store(lanes, value);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

inline float reduce_max(Vec value) {
  float lanes[kLanes];
  store(lanes, value);
  float best = lanes[0];
  for (int i = 1; i < kLanes; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

inline float f16_bits_to_f32(uint16_t bits) {
#if TESSERA_TIER >= TESSERA_TIER_AVX2
  return _cvtsh_ss(bits);
#else
  const uint32_t magnitude = bits & 0x7fff;
  uint32_t wide = magnitude >= 0x7c00 ? 0x7f800000u | (magnitude & 0x3ff) << 13
                                      : (magnitude << 13) + (112u << 23);
  float value;
  if (magnitude < 0x400) {
    value = static_cast<float>(magnitude) * 0x1p-24f;
    memcpy(&wide, &value, 4);
  }
  wide |= static_cast<uint32_t>(bits & 0x8000) << 16;
  memcpy(&value, &wide, 4);
  return value;
#endif
}

/// kLanes values of IEEE binary16, widened exactly.
inline Vec load_f16(const uint16_t* source) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
#else
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = f16_bits_to_f32(source[i]);
  return load(lanes);
#endif
}

/// kLanes values of bfloat16, widened exactly.
inline Vec load_bf16(const uint16_t* source) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t wide = static_cast<uint32_t>(source[i]) << 16;
    memcpy(&lanes[i], &wide, 4);
  }
  return load(lanes);
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
