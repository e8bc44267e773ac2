#pragma once

// Vector arithmetic of one tier's width, over GCC/Clang vector types. Included only by `*_cpu.inl`
// files, inside objects compiled for one tier: everything has internal linkage.

#include <stdint.h>
#include <string.h>

#include "cpu/tier.hpp"

#if TESSERA_TIER >= TESSERA_TIER_AVX2
#include <immintrin.h>
#elif TESSERA_TIER >= TESSERA_TIER_NEON
#include <arm_neon.h>
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

// Vector registers: those of AVX-512 and of aarch64, or those of older x86-64.
#if TESSERA_TIER >= TESSERA_TIER_AVX512 || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t IVec __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef uint32_t UVec __attribute__((vector_size(kLanes * sizeof(uint32_t))));

inline Vec splat(float value) {
  return value - Vec{};
}
inline IVec splat_int(int32_t value) {
  return value - IVec{};
}
inline Vec to_float(IVec value) {
  return __builtin_convertvector(value, Vec);
}
/// The same bits as another type of the same size.
template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
/// Lane by lane: mask (0 or -1, of a comparison) ? a : b.
inline Vec select(IVec mask, Vec a, Vec b) {
  return bits_as<Vec>((mask & bits_as<IVec>(a)) | (~mask & bits_as<IVec>(b)));
}

/// 0, 1, 2, ...
inline IVec lane_numbers() {
  IVec result;
  for (int i = 0; i < kLanes; ++i) result[i] = i;
  return result;
}

/// True when any lane of a mask is set.
inline bool any(IVec mask) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_test_epi32_mask(bits_as<__m512i>(mask), bits_as<__m512i>(mask)) != 0;
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_movemask_ps(bits_as<__m256>(mask)) != 0;
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  return vmaxvq_u32(bits_as<uint32x4_t>(mask)) != 0;
#else
  int32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= mask[i];
  return bits != 0;
#endif
}

inline Vec load(const float* source) {
  Vec result;
  memcpy(&result, source, sizeof result);
  return result;
}

inline void store(float* target, Vec value) {
  memcpy(target, &value, sizeof value);
}

/// The first `n` values (0 <= n <= kLanes), zeros behind them; memory behind them is not touched.
inline Vec load_first(const float* source, int64_t n) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), source);
#else
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = source[i];
  return load(lanes);
#endif
}

inline void store_first(float* target, Vec value, int64_t n) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  _mm512_mask_storeu_ps(target, static_cast<__mmask16>((1u << n) - 1), value);
#else
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = 0; i < n; ++i) target[i] = lanes[i];
#endif
}

/// kLanes bytes, widened.
inline IVec load_u8(const uint8_t* source) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return bits_as<IVec>(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source))));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return bits_as<IVec>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source))));
#else
  typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
  Bytes bytes;
  memcpy(&bytes, source, sizeof bytes);
  return __builtin_convertvector(bytes, IVec);
#endif
}

inline IVec load_i8(const int8_t* source) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return bits_as<IVec>(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source))));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return bits_as<IVec>(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source))));
#else
  typedef int8_t Bytes __attribute__((vector_size(kLanes)));
  Bytes bytes;
  memcpy(&bytes, source, sizeof bytes);
  return __builtin_convertvector(bytes, IVec);
#endif
}

/// a * b + c, fused where the tier has the instruction.
inline Vec fmadd(Vec a, Vec b, Vec c) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_fmadd_ps(a, b, c);
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_fmadd_ps(a, b, c);
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

inline Vec max(Vec a, Vec b) {
  return a > b ? a : b;
}
inline Vec min(Vec a, Vec b) {
  return a < b ? a : b;
}

/// The low byte of every lane.
inline void store_i8(int8_t* target, IVec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target),
                   _mm512_cvtepi32_epi8(bits_as<__m512i>(value)));
#else
  typedef int8_t Bytes __attribute__((vector_size(kLanes)));
  const Bytes bytes = __builtin_convertvector(value, Bytes);
  memcpy(target, &bytes, sizeof bytes);
#endif
}

/// Lanes 2i and 2i + 1 exchanged.
inline Vec swap_pairs(Vec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_permute_ps(value, 0xb1);
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_permute_ps(value, 0xb1);
#else
  return Vec{value[1], value[0], value[3], value[2]};
#endif
}

/// Sum of the lanes: halves are added until one lane is left.
inline float reduce_add(Vec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX2
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(value), _mm512_extractf32x8_ps(value, 1));
#else
  const __m256 eight = value;
#endif
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
  return (value[0] + value[2]) + (value[1] + value[3]);
#endif
}

/// Largest of the lanes; no lane may be NaN.
inline float reduce_max(Vec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX2
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(value), _mm512_extractf32x8_ps(value, 1));
#else
  const __m256 eight = value;
#endif
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#else
  float best = value[0];
  for (int i = 1; i < kLanes; ++i) best = value[i] > best ? value[i] : best;
  return best;
#endif
}

/// The transpose of a square: lane j of rows[i] goes to lane i of rows[j].
inline void transpose(Vec (&rows)[kLanes]) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  Vec four[16];  // quarter j of four[4 g + i]: lane 4 j + i of rows 4 g to 4 g + 3
  for (int g = 0; g < 16; g += 4) {
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(rows[g], rows[g + 1]));
    const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(rows[g], rows[g + 1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(rows[g + 2], rows[g + 3]));
    const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(rows[g + 2], rows[g + 3]));
    four[g] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    four[g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    four[g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    four[g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  for (int i = 0; i < 4; ++i) {
    const Vec low0 = _mm512_shuffle_f32x4(four[i], four[4 + i], 0x44);
    const Vec low1 = _mm512_shuffle_f32x4(four[8 + i], four[12 + i], 0x44);
    const Vec high0 = _mm512_shuffle_f32x4(four[i], four[4 + i], 0xee);
    const Vec high1 = _mm512_shuffle_f32x4(four[8 + i], four[12 + i], 0xee);
    rows[i] = _mm512_shuffle_f32x4(low0, low1, 0x88);
    rows[4 + i] = _mm512_shuffle_f32x4(low0, low1, 0xdd);
    rows[8 + i] = _mm512_shuffle_f32x4(high0, high1, 0x88);
    rows[12 + i] = _mm512_shuffle_f32x4(high0, high1, 0xdd);
  }
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  Vec four[8];  // half j of four[4 g + i]: lane 4 j + i of rows 4 g to 4 g + 3
  for (int g = 0; g < 8; g += 4) {
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(rows[g], rows[g + 1]));
    const __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(rows[g], rows[g + 1]));
    const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(rows[g + 2], rows[g + 3]));
    const __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(rows[g + 2], rows[g + 3]));
    four[g] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    four[g + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    four[g + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    four[g + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(four[i], four[4 + i], 0x20);
    rows[4 + i] = _mm256_permute2f128_ps(four[i], four[4 + i], 0x31);
  }
#else
  const Vec a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Vec b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Vec c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Vec d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#endif
}

inline int32_t reduce_add(IVec value) {
  int32_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += value[i];
  return sum;
}

inline int32_t reduce_max(IVec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_reduce_max_epi32(bits_as<__m512i>(value));
#else
  int32_t best = value[0];
  for (int i = 1; i < kLanes; ++i) best = value[i] > best ? value[i] : best;
  return best;
#endif
}

inline float f16_bits_to_f32(uint16_t bits) {
#if TESSERA_TIER >= TESSERA_TIER_AVX2
  return _cvtsh_ss(bits);
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  return static_cast<float>(bits_as<__fp16>(bits));
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

inline float bf16_bits_to_f32(uint16_t bits) {
  return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

/// kLanes values of IEEE binary16 at any address, widened exactly.
inline Vec load_f16(const void* source) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(source)));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(source)));
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  float16x4_t halves;
  memcpy(&halves, source, sizeof halves);
  return vcvt_f32_f16(halves);
#else
  uint16_t halves[kLanes];
  memcpy(halves, source, sizeof halves);
  Vec result;
  for (int i = 0; i < kLanes; ++i) result[i] = f16_bits_to_f32(halves[i]);
  return result;
#endif
}

/// kLanes values of bfloat16 at any address, widened exactly.
inline Vec load_bf16(const void* source) {
  typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t))));
  Halves halves;
  memcpy(&halves, source, sizeof halves);
  return bits_as<Vec>(__builtin_convertvector(halves, UVec) << 16);
}

/// The first `n` values (0 <= n <= kLanes), zeros behind them; memory behind them is not touched.
inline Vec load_f16_first(const void* source, int64_t n) {
  uint16_t halves[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) memcpy(halves + i, static_cast<const uint16_t*>(source) + i, 2);
  return load_f16(halves);
}

/// To IEEE binary16, to nearest even; NaN stays one.
inline uint16_t f32_to_f16_bits(float value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX2
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<uint16_t>(_mm_cvtsi128_si32(half));
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  return bits_as<uint16_t>(static_cast<__fp16>(value));
#else
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // rounds to infinity
    half = 0x7c00;
  } else if (magnitude < 0x38800000) {  // subnormal or zero: adding 0.5 rounds at 2^-24
    half = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000;
  } else {
    half = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
#endif
}

inline void store_f16(void* target, Vec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  _mm256_storeu_si256(static_cast<__m256i*>(target),
                      _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  _mm_storeu_si128(static_cast<__m128i*>(target),
                   _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
#elif TESSERA_TIER >= TESSERA_TIER_NEON
  const float16x4_t halves = vcvt_f16_f32(value);
  memcpy(target, &halves, sizeof halves);
#else
  uint16_t halves[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = f32_to_f16_bits(value[i]);
  memcpy(target, halves, sizeof halves);
#endif
}

/// To bfloat16, to nearest even; NaN stays one.
inline uint16_t f32_to_bf16_bits(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// To the nearest integer, ties to even, for |value| < 2^22.
inline Vec round_to_even(Vec value) {
  const Vec shift = splat(0x1.8p23f);
  return (value + shift) - shift;
}

/// e^value = 2^exponent (1 + fraction): value = exponent ln 2 + r with |r| <= ln 2 / 2, and
/// fraction = e^r - 1 by a polynomial of degree 6 (its error is 1.1e-8). |value| < 2^20.
struct ExpParts {
  Vec exponent, fraction;
};
inline ExpParts exp_parts(Vec value) {
  const Vec exponent = round_to_even(value * splat(0x1.715476p+0f));
  // ln 2 in two parts; the first has 15 bits, so that its product with the exponent is exact.
  Vec r = fmadd(exponent, splat(-0x1.62e4p-1f), value);
  r = fmadd(exponent, splat(-0x1.7f7d1cp-20f), r);
  Vec p = splat(0.001392692661f);
  p = fmadd(p, r, splat(0.008363773874f));
  p = fmadd(p, r, splat(0.04166655011f));
  p = fmadd(p, r, splat(0.1666657338f));
  p = fmadd(p, r, splat(0.5f));
  return {exponent, fmadd(p * r, r, r)};
}

/// value * 2^exponent for integers -252 <= exponent <= 254, rounded once.
inline Vec scale_by_power(Vec value, Vec exponent) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  return _mm512_scalef_ps(value, exponent);
#else
  // 2^exponent in two factors, each a normal number.
  const IVec e = __builtin_convertvector(exponent, IVec), half = e >> 1;
  return value * bits_as<Vec>((half + 127) << 23) * bits_as<Vec>((e - half + 127) << 23);
#endif
}

/// e^value within 1.1 units in the last place (subnormal results: within the smallest subnormal);
/// infinity beyond 88.73, 0 below -104, NaN for NaN.
inline Vec exp(Vec value) {
  // These comparisons are false for NaN, which so passes on.
  value = select(value > splat(89.0f), splat(89.0f), value);
  value = select(value < splat(-105.0f), splat(-105.0f), value);
  const ExpParts parts = exp_parts(value);
  return scale_by_power(1.0f + parts.fraction, parts.exponent);
}

/// Within 2.5 units in the last place.
inline Vec tanh(Vec value) {
  const Vec magnitude = bits_as<Vec>(bits_as<IVec>(value) & 0x7fffffff);
  // Beyond 10 tanh is 1 in f32. NaN passes on.
  const Vec twice = 2.0f * select(magnitude > splat(10.0f), splat(10.0f), magnitude);
  // t = e^(2 |x|) - 1 without cancellation; tanh = t / (t + 2).
  const ExpParts parts = exp_parts(twice);
  const Vec power = scale_by_power(splat(1.0f), parts.exponent);
  const Vec t = fmadd(power, parts.fraction, power - 1.0f);
  const Vec result = t / (t + 2.0f);
  return bits_as<Vec>(bits_as<IVec>(result) | (bits_as<IVec>(value) & INT32_MIN));
}

/// The normal distribution's Phi(-value) for value >= 0, within 2e-7 absolutely and, up to
/// value = 13, 1e-5 relatively: erfc(z) / 2 with z = value / sqrt 2, from a polynomial in
/// t = 3 / (3 + z) for erfc(z) e^(z^2) / t (its relative error is 2e-8 for z <= 10).
inline Vec normal_tail(Vec value) {
  const Vec z = value * splat(0x1.6a09e6p-1f);
  const Vec t = 3.0f / (3.0f + z);
  Vec p = splat(0.0570409653f);
  p = fmadd(p, t, splat(-0.299373093f));
  p = fmadd(p, t, splat(0.552835878f));
  p = fmadd(p, t, splat(-0.464204354f));
  p = fmadd(p, t, splat(0.422891742f));
  p = fmadd(p, t, splat(-0.0124823966f));
  p = fmadd(p, t, splat(0.195865579f));
  p = fmadd(p, t, splat(0.170607757f));
  p = fmadd(p, t, splat(0.188787592f));
  p = fmadd(p, t, splat(0.188030333f));
  return 0.5f * t * p * exp(-0.5f * value * value);
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
