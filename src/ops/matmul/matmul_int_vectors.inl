// Integer vectors of the AVX tiers for matmul_q8.inl: rows of bytes, gathered and transposed, and
// dot products of four bytes a lane.

#pragma once

#include "cpu/simd.hpp"

namespace tessera::TESSERA_ISA {
namespace {

#if TESSERA_TIER >= TESSERA_TIER_AVX512

typedef __m512i Ints;

inline Ints splat_ints(int32_t value) {
  return _mm512_set1_epi32(value);
}
inline Ints load_ints(const void* source) {
  return _mm512_loadu_si512(source);
}
inline Ints add_ints(Ints a, Ints b) {
  return _mm512_add_epi32(a, b);
}
inline Ints and_ints(Ints a, Ints b) {
  return _mm512_and_si512(a, b);
}
inline Ints or_ints(Ints a, Ints b) {
  return _mm512_or_si512(a, b);
}
inline Ints multiply_ints(Ints a, Ints b) {
  return _mm512_mullo_epi32(a, b);
}
template <int kBits>
inline Ints shift_right(Ints a) {
  return _mm512_srli_epi32(a, kBits);
}
inline Ints shift_right(Ints a, int bits) {
  return _mm512_srlv_epi32(a, splat_ints(bits));
}
template <int kBits>
inline Ints shift_left(Ints a) {
  return _mm512_slli_epi32(a, kBits);
}
inline Ints xor_ints(Ints a, Ints b) {
  return _mm512_xor_si512(a, b);
}
inline Ints zip_low_32(Ints a, Ints b) {
  return _mm512_unpacklo_epi32(a, b);
}
inline Ints zip_high_32(Ints a, Ints b) {
  return _mm512_unpackhi_epi32(a, b);
}
inline Ints zip_low_64(Ints a, Ints b) {
  return _mm512_unpacklo_epi64(a, b);
}
inline Ints zip_high_64(Ints a, Ints b) {
  return _mm512_unpackhi_epi64(a, b);
}
inline Vec ints_to_float(Ints a) {
  return _mm512_cvtepi32_ps(a);
}

/// Four bytes at source + offsets[lane].
inline Ints gather_ints(const unsigned char* source, Ints offsets) {
  return _mm512_i32gather_epi32(offsets, source, 1);
}
/// The low 16 bits of each lane, an IEEE binary16.
inline Vec low_halves(Ints a) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
}

/// 16 bytes of every fourth row, one row in each 128 bits.
inline Ints load_every_fourth(const unsigned char* source, int64_t stride) {
  const auto at = [&](int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * stride));
  };
  Ints rows = _mm512_castsi128_si512(at(0));
  rows = _mm512_inserti32x4(rows, at(4), 1);
  rows = _mm512_inserti32x4(rows, at(8), 2);
  return _mm512_inserti32x4(rows, at(12), 3);
}

#else

typedef __m256i Ints;

inline Ints splat_ints(int32_t value) {
  return _mm256_set1_epi32(value);
}
inline Ints load_ints(const void* source) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(source));
}
inline Ints add_ints(Ints a, Ints b) {
  return _mm256_add_epi32(a, b);
}
inline Ints and_ints(Ints a, Ints b) {
  return _mm256_and_si256(a, b);
}
inline Ints or_ints(Ints a, Ints b) {
  return _mm256_or_si256(a, b);
}
inline Ints multiply_ints(Ints a, Ints b) {
  return _mm256_mullo_epi32(a, b);
}
template <int kBits>
inline Ints shift_right(Ints a) {
  return _mm256_srli_epi32(a, kBits);
}
inline Ints shift_right(Ints a, int bits) {
  return _mm256_srlv_epi32(a, splat_ints(bits));
}
template <int kBits>
inline Ints shift_left(Ints a) {
  return _mm256_slli_epi32(a, kBits);
}
inline Ints xor_ints(Ints a, Ints b) {
  return _mm256_xor_si256(a, b);
}
inline Ints zip_low_32(Ints a, Ints b) {
  return _mm256_unpacklo_epi32(a, b);
}
inline Ints zip_high_32(Ints a, Ints b) {
  return _mm256_unpackhi_epi32(a, b);
}
inline Ints zip_low_64(Ints a, Ints b) {
  return _mm256_unpacklo_epi64(a, b);
}
inline Ints zip_high_64(Ints a, Ints b) {
  return _mm256_unpackhi_epi64(a, b);
}
inline Vec ints_to_float(Ints a) {
  return _mm256_cvtepi32_ps(a);
}

inline Ints gather_ints(const unsigned char* source, Ints offsets) {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(source), offsets, 1);
}
inline Vec low_halves(Ints a) {
  const Ints words = _mm256_and_si256(a, splat_ints(0xffff));
  const Ints packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

inline Ints load_every_fourth(const unsigned char* source, int64_t stride) {
  return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(source + 4 * stride),
                             reinterpret_cast<const __m128i*>(source));
}

#endif

/// 0, stride, 2 stride, ... in the lanes.
inline Ints lane_multiples(int64_t stride) {
  int32_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i * static_cast<int32_t>(stride);
  return load_ints(lanes);
}

/// 16 bytes of kLanes rows, transposed: lane r of groups[g] has bytes 4 g to 4 g + 3 of row r.
inline void load_groups(const unsigned char* source, int64_t stride, Ints* groups) {
  const Ints a = load_every_fourth(source, stride);
  const Ints b = load_every_fourth(source + stride, stride);
  const Ints c = load_every_fourth(source + 2 * stride, stride);
  const Ints d = load_every_fourth(source + 3 * stride, stride);
  const Ints ab_low = zip_low_32(a, b), ab_high = zip_high_32(a, b);
  const Ints cd_low = zip_low_32(c, d), cd_high = zip_high_32(c, d);
  groups[0] = zip_low_64(ab_low, cd_low);
  groups[1] = zip_high_64(ab_low, cd_low);
  groups[2] = zip_low_64(ab_high, cd_high);
  groups[3] = zip_high_64(ab_high, cd_high);
}

inline Ints splat_four_bytes(const int8_t* source) {
  int32_t word;
  memcpy(&word, source, sizeof word);
  return splat_ints(word);
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
