// The machine's limits for one thread and one tier; compiled once per tier.

#include "bench/probe_kernels.hpp"
#include "cpu/simd.hpp"
#if TESSERA_TIER == TESSERA_TIER_AMX
#include "cpu/tiles.inl"
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tessera::TESSERA_ISA {
namespace {

// Makes the compiler believe that the value is read and changed, at no cost.
#if TESSERA_TIER >= TESSERA_TIER_AVX512
#define TESSERA_OPAQUE(value) __asm__ volatile("" : "+v"(value))
#elif defined(__x86_64__)
#define TESSERA_OPAQUE(value) __asm__ volatile("" : "+x"(value))
#else
#define TESSERA_OPAQUE(value) __asm__ volatile("" : "+w"(value))
#endif

inline IVec load_integers(const unsigned char* source) {
  IVec result;
  memcpy(&result, source, sizeof result);
  return result;
}

/// Eight vectors a step, spread over the streams.
template <int kStreams>
void read_streams(const unsigned char* data, int64_t size_bytes, int64_t n_passes) noexcept {
  constexpr int64_t kVector = sizeof(IVec);
  constexpr int64_t kStep = 8 / kStreams * kVector;  // of one stream
  const int64_t stream_bytes = size_bytes / kStreams;
  IVec seen[8] = {};
  for (int64_t pass = 0; pass < n_passes; ++pass) {
    for (int64_t at = 0; at < stream_bytes; at += kStep) {
      for (int i = 0; i < 8; ++i) {
        seen[i] |= load_integers(data + i % kStreams * stream_bytes + at + i / kStreams * kVector);
      }
    }
    for (int i = 0; i < 8; ++i) TESSERA_OPAQUE(seen[i]);
  }
}

void read(const unsigned char* data, int64_t size_bytes, int n_streams, int64_t n_passes) noexcept {
  if (n_streams == 1) read_streams<1>(data, size_bytes, n_passes);
  if (n_streams == 2) read_streams<2>(data, size_bytes, n_passes);
  if (n_streams == 4) read_streams<4>(data, size_bytes, n_passes);
  if (n_streams == 8) read_streams<8>(data, size_bytes, n_passes);
}

inline void store_around_caches(unsigned char* target, IVec value) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  _mm512_stream_si512(reinterpret_cast<__m512i*>(target), bits_as<__m512i>(value));
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  _mm256_stream_si256(reinterpret_cast<__m256i*>(target), bits_as<__m256i>(value));
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(target), bits_as<__m128i>(value));
#else
  memcpy(target, &value, sizeof value);
#endif
}

template <bool kBypass>
void copy_blocks(unsigned char* target, const unsigned char* source, int64_t size_bytes,
                 int64_t n_passes) noexcept {
  constexpr int64_t kVector = sizeof(IVec);
  for (int64_t pass = 0; pass < n_passes; ++pass) {
    for (int64_t at = 0; at < size_bytes; at += 8 * kVector) {
      IVec block[8];
      for (int i = 0; i < 8; ++i) block[i] = load_integers(source + at + i * kVector);
      for (int i = 0; i < 8; ++i) {
        if constexpr (kBypass) {
          store_around_caches(target + at + i * kVector, block[i]);
        } else {
          memcpy(target + at + i * kVector, &block[i], sizeof block[i]);
        }
      }
    }
    __asm__ volatile("" ::: "memory");  // else the last pass would do for all
  }
#if defined(__x86_64__)
  if constexpr (kBypass) _mm_sfence();
#endif
}

void copy(unsigned char* target, const unsigned char* source, int64_t size_bytes, bool bypass,
          int64_t n_passes) noexcept {
  if (bypass) {
    copy_blocks<true>(target, source, size_bytes, n_passes);
  } else {
    copy_blocks<false>(target, source, size_bytes, n_passes);
  }
}

// Two units times a latency of four cycles (eight where a product and a sum are two instructions;
// four units in some of aarch64) ask for at least eight chains, or 16; the factors need two more
// registers.
constexpr int kChains = kRegisters == 32 ? 16 : 12;

void multiply_add(int64_t n_rounds) noexcept {
  Vec chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = splat(1.0f + static_cast<float>(i));
  Vec factor = splat(0.5f), term = splat(1.0f);  // every chain tends to 2
  TESSERA_OPAQUE(factor);
  TESSERA_OPAQUE(term);
  for (int64_t round = 0; round < n_rounds; ++round) {
    for (int i = 0; i < kChains; ++i) chains[i] = fmadd(chains[i], factor, term);
  }
  for (int i = 0; i < kChains; ++i) TESSERA_OPAQUE(chains[i]);
}

#if TESSERA_TIER >= TESSERA_TIER_AVX512
typedef __m512i Bytes;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512VNNI
  return _mm512_dpbusd_epi32(sum, a, b);
#else
  const Bytes pairs = _mm512_maddubs_epi16(a, b);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
}
inline Bytes ones() {
  return _mm512_set1_epi8(1);
}
#elif TESSERA_TIER == TESSERA_TIER_AVX2
typedef __m256i Bytes;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
  const Bytes pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Bytes ones() {
  return _mm256_set1_epi8(1);
}
#elif TESSERA_TIER == TESSERA_TIER_DOTPROD
typedef int8x16_t Bytes;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
  return vreinterpretq_s8_s32(vdotq_s32(vreinterpretq_s32_s8(sum), a, b));
}
inline Bytes ones() {
  return vdupq_n_s8(1);
}
#endif

#if TESSERA_TIER == TESSERA_TIER_AMX
// Four sums of 16 x 16 int32 from two pairs of full tiles: each loaded byte is used twice, as in
// the best of kernels; here the tiles just stay.
constexpr int64_t kOpsPerRound = 2 * 4 * 16 * 16 * 64;
void dot_int8(int64_t n_rounds) noexcept {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, 16, 64);
  configure_tiles(config);
  const unsigned char bytes[16 * 64] = {};
  load_tile<4>(bytes, 64);
  load_tile<5>(bytes, 64);
  load_tile<6>(bytes, 64);
  load_tile<7>(bytes, 64);
  for (int64_t round = 0; round < n_rounds; ++round) {
    multiply_tiles_int8<0, 4, 6>();
    multiply_tiles_int8<1, 4, 7>();
    multiply_tiles_int8<2, 5, 6>();
    multiply_tiles_int8<3, 5, 7>();
  }
  release_tiles();
}
#elif TESSERA_TIER >= TESSERA_TIER_DOTPROD
constexpr int64_t kOpsPerRound = 2 * static_cast<int64_t>(sizeof(Bytes)) * kChains;
void dot_int8(int64_t n_rounds) noexcept {
  Bytes chains[kChains];
  Bytes a = ones(), b = ones();
  for (int i = 0; i < kChains; ++i) chains[i] = ones();
  for (int64_t round = 0; round < n_rounds; ++round) {
    for (int i = 0; i < kChains; ++i) {
      TESSERA_OPAQUE(a);  // else equal products would be computed once
      chains[i] = dot(chains[i], a, b);
    }
  }
  for (int i = 0; i < kChains; ++i) TESSERA_OPAQUE(chains[i]);
}
#endif

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = read,
    .copy = copy,
    .multiply_add = multiply_add,
    .flops_per_round = 2 * kLanes * kChains,
#if TESSERA_TIER >= TESSERA_TIER_DOTPROD
    .dot_int8 = dot_int8,
    .int8_ops_per_round = kOpsPerRound,
#else
    .dot_int8 = nullptr,
    .int8_ops_per_round = 0,
#endif
};

}  // namespace tessera::TESSERA_ISA
