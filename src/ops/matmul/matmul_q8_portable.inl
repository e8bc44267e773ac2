// y = x w^T with q8 activations and block formats, for any compiler (and aarch64's SDOT): rows are
// decoded to int8 once for a number of tokens.
//
// The products of the 32 (or 16) values that share a scale are summed as integers, exactly. Then,
// part after part,
//   y = y + integer * (w scale * x scale), y = y + w minimum * x sum
// each rounded twice: the same bits for every M.

#include "cpu/simd.hpp"
#include "ops/matmul/matmul_cpu.hpp"
#include "ops/matmul/unroll.hpp"
#include "ops/quantize/decode_rows.inl"
#include "tensor/blocks.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

/// 32 values: integers (codes less the format's offset), scale and minimum of each part.
struct Block {
  int8_t codes[32];
  float scale[2], minimum[2];
};

inline uint32_t bits_of(const uint8_t (&bytes)[4]) {
  uint32_t bits;
  memcpy(&bits, bytes, sizeof bits);
  return bits;
}

template <typename Source>
inline void split_nibbles(const Source& s, int offset, Block& b) {
  for (int i = 0; i < 16; ++i) {
    b.codes[i] = static_cast<int8_t>((s.qs[i] & 15) - offset);
    b.codes[16 + i] = static_cast<int8_t>((s.qs[i] >> 4) - offset);
  }
}

inline void add_fifth_bits(uint32_t bits, Block& b) {
  for (int i = 0; i < 32; ++i) {
    b.codes[i] = static_cast<int8_t>(b.codes[i] + static_cast<int>((bits >> i) & 1) * 16);
  }
}

inline void decode(const BlockQ4_0& s, Block* b) {
  split_nibbles(s, 8, *b);
  b->scale[0] = f16_bits_to_f32(s.d);
}
inline void decode(const BlockQ4_1& s, Block* b) {
  split_nibbles(s, 0, *b);
  b->scale[0] = f16_bits_to_f32(s.d);
  b->minimum[0] = f16_bits_to_f32(s.m);
}
inline void decode(const BlockQ5_0& s, Block* b) {
  split_nibbles(s, 16, *b);
  add_fifth_bits(bits_of(s.qh), *b);
  b->scale[0] = f16_bits_to_f32(s.d);
}
inline void decode(const BlockQ5_1& s, Block* b) {
  split_nibbles(s, 0, *b);
  add_fifth_bits(bits_of(s.qh), *b);
  b->scale[0] = f16_bits_to_f32(s.d);
  b->minimum[0] = f16_bits_to_f32(s.m);
}
inline void decode(const BlockQ8_0& s, Block* b) {
  memcpy(b->codes, s.qs, sizeof b->codes);
  b->scale[0] = f16_bits_to_f32(s.d);
}

/// The scales and minima of Q4_K and Q5_K, products of 11 and 6 bits: exact.
template <typename Source>
inline void decode_six_bit_pair(const Source& s, int i, Block& b) {
  int scale, minimum;
  six_bit_pair(s.scales, i, &scale, &minimum);
  b.scale[0] = f16_bits_to_f32(s.d) * static_cast<float>(scale);
  b.minimum[0] = -(f16_bits_to_f32(s.dmin) * static_cast<float>(minimum));
}
inline void decode(const BlockQ4_K& s, Block* b) {
  for (int i = 0; i < 8; ++i) {
    decode_six_bit_pair(s, i, b[i]);
    const uint8_t* nibbles = s.qs + i / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      b[i].codes[j] = static_cast<int8_t>((nibbles[j] >> i % 2 * 4) & 15);
    }
  }
}
inline void decode(const BlockQ5_K& s, Block* b) {
  for (int i = 0; i < 8; ++i) {
    decode_six_bit_pair(s, i, b[i]);
    const uint8_t* nibbles = s.qs + i / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      const int low = (nibbles[j] >> i % 2 * 4) & 15, fifth = (s.qh[j] >> i) & 1;
      b[i].codes[j] = static_cast<int8_t>(low | fifth << 4);
    }
  }
}

/// Two bits of each value, which four sub-blocks share a byte for.
inline int two_bits(const uint8_t (&qs)[64], int i, int j) {
  return (qs[i / 4 * 32 + j] >> i % 4 * 2) & 3;
}
inline void decode(const BlockQ2_K& s, Block* b) {
  for (int i = 0; i < 8; ++i) {
    for (int p = 0; p < 2; ++p) {
      const int pair = s.scales[2 * i + p];
      b[i].scale[p] = f16_bits_to_f32(s.d) * static_cast<float>(pair & 15);
      b[i].minimum[p] = -(f16_bits_to_f32(s.dmin) * static_cast<float>(pair >> 4));
    }
    for (int j = 0; j < 32; ++j) b[i].codes[j] = static_cast<int8_t>(two_bits(s.qs, i, j));
  }
}
inline void decode(const BlockQ3_K& s, Block* b) {
  for (int i = 0; i < 8; ++i) {
    for (int p = 0; p < 2; ++p) {
      b[i].scale[p] = f16_bits_to_f32(s.d) * static_cast<float>(q3_k_scale(s.scales, 2 * i + p));
    }
    for (int j = 0; j < 32; ++j) {
      const int third = (s.hmask[j] >> i) & 1;
      b[i].codes[j] = static_cast<int8_t>((two_bits(s.qs, i, j) | third << 2) - 4);
    }
  }
}
inline void decode(const BlockQ6_K& s, Block* b) {
  for (int i = 0; i < 8; ++i) {
    const int half = i / 4, quarter = i % 4;
    for (int p = 0; p < 2; ++p) {
      b[i].scale[p] = f16_bits_to_f32(s.d) * static_cast<float>(s.scales[2 * i + p]);
    }
    for (int j = 0; j < 32; ++j) {
      const int low = (s.ql[64 * half + quarter % 2 * 32 + j] >> quarter / 2 * 4) & 15;
      const int high = (s.qh[32 * half + j] >> quarter * 2) & 3;
      b[i].codes[j] = static_cast<int8_t>((low | high << 4) - 32);
    }
  }
}

/// Sub-blocks of 32 values, and equal parts of each that have a scale (and minimum) of their own.
struct Layout {
  int64_t n_sub_blocks;
  int n_parts;
  bool has_minimum;
};
template <typename Source>
constexpr Layout kLayout = {1, 1, false};
template <>
constexpr Layout kLayout<BlockQ4_1> = {1, 1, true};
template <>
constexpr Layout kLayout<BlockQ5_1> = {1, 1, true};
template <>
constexpr Layout kLayout<BlockQ2_K> = {8, 2, true};
template <>
constexpr Layout kLayout<BlockQ3_K> = {8, 2, false};
template <>
constexpr Layout kLayout<BlockQ4_K> = {8, 1, true};
template <>
constexpr Layout kLayout<BlockQ5_K> = {8, 1, true};
template <>
constexpr Layout kLayout<BlockQ6_K> = {8, 2, false};

#if TESSERA_TIER == TESSERA_TIER_DOTPROD
inline int32x4_t dot_16(int32x4_t sums, const int8_t* a, const int8_t* b) {
  return vdotq_s32(sums, vld1q_s8(a), vld1q_s8(b));
}

/// Dot products of each part of 32 values.
template <int kParts>
inline void dot_parts(const int8_t* a, const int8_t* b, int32_t* parts) {
  if constexpr (kParts == 1) {
    parts[0] = vaddvq_s32(dot_16(dot_16(vdupq_n_s32(0), a, b), a + 16, b + 16));
  } else {
    parts[0] = vaddvq_s32(dot_16(vdupq_n_s32(0), a, b));
    parts[1] = vaddvq_s32(dot_16(vdupq_n_s32(0), a + 16, b + 16));
  }
}
#else
/// Dot products of each part of 32 values. Through arrays of 16 bits: compilers know a
/// multiplication with pairwise sums for those. GCC unrolls a loop of 16 before it looks for
/// vectors, and then finds none: 3 times the time.
template <int kParts>
inline void dot_parts(const int8_t* a, const int8_t* b, int32_t* parts) {
  int16_t wide_a[32], wide_b[32];
  for (int i = 0; i < 32; ++i) wide_a[i] = a[i];
  for (int i = 0; i < 32; ++i) wide_b[i] = b[i];
  if constexpr (kParts == 1) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) sum += wide_a[i] * wide_b[i];
    parts[0] = sum;
  } else {
    for (int p = 0; p < kParts; ++p) {
      int32_t sum = 0;
      TESSERA_DO_NOT_UNROLL
      for (int i = 0; i < 16; ++i) sum += wide_a[16 * p + i] * wide_b[16 * p + i];
      parts[p] = sum;
    }
  }
}

#endif

inline int32_t sum_of_16(const int8_t* a) {
  int32_t total = 0;
  TESSERA_DO_NOT_UNROLL
  for (int i = 0; i < 16; ++i) total += a[i];
  return total;
}

constexpr int64_t kSlabBlocks = 64;  // decoded: 3 KiB a row
constexpr int64_t kChunkRows = 32, kChunkTokens = 192;

/// One row of w, decoded from block `begin` on, times a number of tokens. Sums of earlier slabs
/// wait in y.
template <typename Source>
void multiply_row(const MatmulCpuArgs& args, const Block* blocks, int64_t begin, int64_t n,
                  int64_t i_row, int64_t token_begin, int64_t token_end) {
  constexpr int kParts = kLayout<Source>.n_parts;
  const int64_t n_row_blocks = args.x.n_cols / 32;
  for (int64_t t = token_begin; t < token_end; ++t) {
    const unsigned char* x = row_of<const unsigned char>(args.x, t);
    const float* scales = reinterpret_cast<const float*>(x) + begin;
    const float* sums = scales + n_row_blocks;
    const int8_t* q = reinterpret_cast<const int8_t*>(x + 8 * n_row_blocks) + 32 * begin;
    float* y = row_of<float>(args.y, t) + i_row;
    float value = begin == 0 ? 0 : *y;
    for (int64_t b = 0; b < n; ++b) {
      int32_t integers[kParts];
      dot_parts<kParts>(blocks[b].codes, q + 32 * b, integers);
      for (int p = 0; p < kParts; ++p) {
        value += static_cast<float>(integers[p]) * (blocks[b].scale[p] * scales[b]);
        if (!kLayout<Source>.has_minimum) continue;
        value += blocks[b].minimum[p] *
                 (kParts == 1 ? sums[b]
                              : static_cast<float>(sum_of_16(q + 32 * b + 16 * p)) * scales[b]);
      }
    }
    if (begin + n == n_row_blocks && args.bias) value += args.bias[i_row];
    if (begin + n == n_row_blocks && args.residual.data) {
      value += row_of<const float>(args.residual, t)[i_row];
    }
    *y = value;
  }
}

template <typename Source>
void multiply_all(const MatmulCpuArgs& args, Team& team) {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows), n_rows = args.y.n_cols;
  const int64_t n_blocks = args.x.n_cols / 32, n_across = chunks_of(n_rows, kChunkRows);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t row_begin = chunk % n_across * kChunkRows;
    const int64_t token_begin = chunk / n_across * kChunkTokens;
    for (int64_t i_row = row_begin; i_row < min_of(row_begin + kChunkRows, n_rows); ++i_row) {
      const unsigned char* row = row_of<const unsigned char>(args.w, i_row);
      for (int64_t begin = 0; begin == 0 || begin < n_blocks; begin += kSlabBlocks) {
        const int64_t n = min_of(kSlabBlocks, n_blocks - begin);
        Block blocks[kSlabBlocks];
        constexpr int64_t kSubBlocks = kLayout<Source>.n_sub_blocks;
        for (int64_t b = 0; b < n; b += kSubBlocks) {
          Source source;
          memcpy(&source, row + (begin + b) / kSubBlocks * int64_t{sizeof source}, sizeof source);
          decode(source, blocks + b);
        }
        multiply_row<Source>(args, blocks, begin, n, i_row, token_begin,
                             min_of(token_begin + kChunkTokens, n_tokens));
      }
    }
  }
}

}  // namespace q8
}  // namespace

void matmul_q8(const MatmulCpuArgs& args, Team& team) noexcept {
  switch (args.w_type) {
    case Storage::kQ4_0:
      return q8::multiply_all<BlockQ4_0>(args, team);
    case Storage::kQ4_1:
      return q8::multiply_all<BlockQ4_1>(args, team);
    case Storage::kQ5_0:
      return q8::multiply_all<BlockQ5_0>(args, team);
    case Storage::kQ5_1:
      return q8::multiply_all<BlockQ5_1>(args, team);
    case Storage::kQ8_0:
      return q8::multiply_all<BlockQ8_0>(args, team);
    case Storage::kQ2_K:
      return q8::multiply_all<BlockQ2_K>(args, team);
    case Storage::kQ3_K:
      return q8::multiply_all<BlockQ3_K>(args, team);
    case Storage::kQ4_K:
      return q8::multiply_all<BlockQ4_K>(args, team);
    case Storage::kQ5_K:
      return q8::multiply_all<BlockQ5_K>(args, team);
    case Storage::kQ6_K:
      return q8::multiply_all<BlockQ6_K>(args, team);
    default:
      return;  // the row supports no other
  }
}

}  // namespace tessera::TESSERA_ISA
