// The limit of AVX512-BF16: pairs of bf16 products into f32.

#include <immintrin.h>

#include "bench/peak_kernels.hpp"

namespace tessera::avx512bf16 {
namespace {

// One or two units times a latency of four to six cycles; 16 chains and two factors of 32
// registers.
constexpr int kChains = 16;

inline __m512bh bits_of(__m512 value) {
  __m512bh result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

void dot_bf16(int64_t n_rounds) noexcept {
  // 0x3f803f80: a pair of bf16 ones.
  __m512 a = _mm512_castsi512_ps(_mm512_set1_epi32(0x3f803f80)), b = a;
  __m512 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_setzero_ps();
  for (int64_t round = 0; round < n_rounds; ++round) {
    for (int i = 0; i < kChains; ++i) {
      __asm__ volatile("" : "+v"(a));  // else equal products would be computed once
      chains[i] = _mm512_dpbf16_ps(chains[i], bits_of(a), bits_of(b));
    }
  }
  for (int i = 0; i < kChains; ++i) __asm__ volatile("" : "+v"(chains[i]));
}

}  // namespace

const PeakKernel kDotBf16 = {.run = dot_bf16, .ops_per_round = int64_t{2} * 32 * kChains};

}  // namespace tessera::avx512bf16
