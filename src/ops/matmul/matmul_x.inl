// What the exact products share: activations of any type as f32, and the slabs of K.

#pragma once

#include "cpu/simd.hpp"
#include "ops/matmul/matmul_cpu.hpp"
#include "ops/matmul/unroll.hpp"
#include "ops/quantize/decode_rows.inl"

namespace tessera::TESSERA_ISA {
namespace {

#if TESSERA_TIER >= TESSERA_TIER_AVX512
/// 4-bit blocks through a table of their 16 values, which a permutation looks up: the same values
/// as decode_row, with a third less work for the two ports that all of it needs.
template <typename Block>
inline void decode_by_table(const unsigned char* source, float* target, int64_t n) {
  constexpr bool kHasMinimum = sizeof(Block) == sizeof(BlockQ4_1);
  Vec codes;
  for (int i = 0; i < kLanes; ++i) codes[i] = static_cast<float>(kHasMinimum ? i : i - 8);
  for (int64_t i = 0; i < n; i += 32, source += sizeof(Block)) {
    // The scale and, next to it, the minimum.
    const __m128 halves = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source)));
    Vec table = _mm512_broadcastss_ps(halves) * codes;
    if (kHasMinimum) table += _mm512_broadcastss_ps(_mm_movehdup_ps(halves));
    const IVec bytes = load_u8(source + sizeof(Block) - 16);
    store(target + i, _mm512_permutexvar_ps(bits_as<__m512i>(bytes), table));
    store(target + i + 16, _mm512_permutexvar_ps(bits_as<__m512i>(bytes >> 4), table));
  }
}
#endif

/// Values `begin` to `begin + n` of a row of q8 as f32: scale * q, rounded once. `begin` and `n`
/// are multiples of 32.
void decode_q8(const unsigned char* row, int64_t n_values, int64_t begin, int64_t n,
               float* target) {
  const int64_t n_blocks = n_values / 32;
  const float* scales = reinterpret_cast<const float*>(row) + begin / 32;
  const int8_t* q = reinterpret_cast<const int8_t*>(row + n_blocks * 8) + begin;
  for (int64_t i = 0; i < n; i += kLanes) {
    store(target + i, splat(scales[i / 32]) * to_float(load_i8(q + i)));
  }
}

/// Bytes of `n` values of a row, a multiple of the block size.
inline int64_t storage_bytes(Storage type, int64_t n) {
  switch (type) {
    case Storage::kF32:
      return n * 4;
    case Storage::kF16:
    case Storage::kBF16:
      return n * 2;
    case Storage::kQ4_0:
      return n / 32 * static_cast<int64_t>(sizeof(BlockQ4_0));
    case Storage::kQ4_1:
      return n / 32 * static_cast<int64_t>(sizeof(BlockQ4_1));
    case Storage::kQ5_0:
      return n / 32 * static_cast<int64_t>(sizeof(BlockQ5_0));
    case Storage::kQ5_1:
      return n / 32 * static_cast<int64_t>(sizeof(BlockQ5_1));
    case Storage::kQ8_0:
      return n / 32 * static_cast<int64_t>(sizeof(BlockQ8_0));
    case Storage::kQ2_K:
      return n / 256 * static_cast<int64_t>(sizeof(BlockQ2_K));
    case Storage::kQ3_K:
      return n / 256 * static_cast<int64_t>(sizeof(BlockQ3_K));
    case Storage::kQ4_K:
      return n / 256 * static_cast<int64_t>(sizeof(BlockQ4_K));
    case Storage::kQ5_K:
      return n / 256 * static_cast<int64_t>(sizeof(BlockQ5_K));
    case Storage::kQ6_K:
      return n / 256 * static_cast<int64_t>(sizeof(BlockQ6_K));
  }
  return 0;
}

/// `n` values of a row of w, a multiple of the block size, to f32.
inline void decode_weights(Storage type, const unsigned char* source, float* target, int64_t n) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  if (type == Storage::kQ4_0) return decode_by_table<BlockQ4_0>(source, target, n);
  if (type == Storage::kQ4_1) return decode_by_table<BlockQ4_1>(source, target, n);
#endif
  decode_row(type, source, target, n);
}

/// The same values of one token's activations: in place if they are f32, else through `buffer`.
const float* activations(const MatmulCpuArgs& args, int64_t i_token, int64_t begin, int64_t n,
                         float* buffer) {
  const unsigned char* row = row_of<const unsigned char>(args.x, i_token);
  if (args.x_is_q8) {
    decode_q8(row, args.x.n_cols, begin, n, buffer);
    return buffer;
  }
  if (args.x_type == Storage::kF32) return reinterpret_cast<const float*>(row) + begin;
  decode_row(args.x_type, row + 2 * begin, buffer, n);
  return buffer;
}

inline void copy_exact_activations(const MatmulCpuArgs& args, int64_t i_token, int64_t begin,
                                   int64_t n, float* target) {
  const float* x = activations(args, i_token, begin, n, target);
  if (x != target) memcpy(target, x, static_cast<size_t>(n) * sizeof(float));
}

inline void add_bias_and_residual(const MatmulCpuArgs& args, int64_t i_token, int64_t col_begin,
                                  int64_t n_cols) {
  float* y = row_of<float>(args.y, i_token);
  for (int64_t i = col_begin; args.bias && i < col_begin + n_cols; ++i) y[i] += args.bias[i];
  if (!args.residual.data) return;
  const float* residual = row_of<const float>(args.residual, i_token);
  for (int64_t i = col_begin; i < col_begin + n_cols; ++i) y[i] += residual[i];
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
