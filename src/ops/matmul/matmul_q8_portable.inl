// y = x w^T with q8 activations and block formats, for any compiler: rows are decoded to int8 once
// for a number of tokens.
//
// The 32 products of a block are summed as integers, exactly. Then, block after block,
//   y = y + integer * (w scale * x scale), y = y + w minimum * x sum
// each rounded twice: the same bits for every M.

#include "cpu/simd.hpp"
#include "ops/matmul/matmul_cpu.hpp"
#include "tensor/blocks.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

/// Sub-blocks of 32 values: integers (codes less the format's offset), scale and minimum.
struct Block {
  int8_t codes[32];
  float scale, minimum;
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
  b->scale = f16_bits_to_f32(s.d);
}
inline void decode(const BlockQ4_1& s, Block* b) {
  split_nibbles(s, 0, *b);
  b->scale = f16_bits_to_f32(s.d);
  b->minimum = f16_bits_to_f32(s.m);
}
inline void decode(const BlockQ5_0& s, Block* b) {
  split_nibbles(s, 16, *b);
  add_fifth_bits(bits_of(s.qh), *b);
  b->scale = f16_bits_to_f32(s.d);
}
inline void decode(const BlockQ5_1& s, Block* b) {
  split_nibbles(s, 0, *b);
  add_fifth_bits(bits_of(s.qh), *b);
  b->scale = f16_bits_to_f32(s.d);
  b->minimum = f16_bits_to_f32(s.m);
}
inline void decode(const BlockQ8_0& s, Block* b) {
  memcpy(b->codes, s.qs, sizeof b->codes);
  b->scale = f16_bits_to_f32(s.d);
}

/// The scales and minima of Q4_K and Q5_K, products of 11 and 6 bits: exact.
template <typename Source>
inline void decode_six_bit_pair(const Source& s, int i, Block& b) {
  int scale, minimum;
  six_bit_pair(s.scales, i, &scale, &minimum);
  b.scale = f16_bits_to_f32(s.d) * static_cast<float>(scale);
  b.minimum = -(f16_bits_to_f32(s.dmin) * static_cast<float>(minimum));
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

template <typename Source>
constexpr bool kIsKFormat = requires(Source s) {
  s.dmin;
};
template <typename Source>
constexpr int64_t kSubBlocks = kIsKFormat<Source> ? 8 : 1;
template <typename Source>
constexpr bool kHasMinimum = kIsKFormat<Source> || requires(Source s) {
  s.m;
};

/// Through arrays of 16 bits: compilers know a multiplication with pairwise sums for those.
inline int32_t dot(const int8_t* a, const int8_t* b) {
  int16_t wide_a[32], wide_b[32];
  for (int i = 0; i < 32; ++i) wide_a[i] = a[i];
  for (int i = 0; i < 32; ++i) wide_b[i] = b[i];
  int32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += wide_a[i] * wide_b[i];
  return sum;
}

constexpr int64_t kSlabBlocks = 64;  // decoded: 2.5 KiB a row
constexpr int64_t kChunkRows = 32, kChunkTokens = 192;

/// One row of w, decoded from block `begin` on, times a number of tokens. Sums of earlier slabs
/// wait in y.
template <typename Source>
void multiply_row(const MatmulCpuArgs& args, const Block* blocks, int64_t begin, int64_t n,
                  int64_t i_row, int64_t token_begin, int64_t token_end) {
  const int64_t n_row_blocks = args.x.n_cols / 32;
  for (int64_t t = token_begin; t < token_end; ++t) {
    const unsigned char* x = row_of<const unsigned char>(args.x, t);
    const float* scales = reinterpret_cast<const float*>(x) + begin;
    const float* sums = scales + n_row_blocks;
    const int8_t* q = reinterpret_cast<const int8_t*>(x + 8 * n_row_blocks) + 32 * begin;
    float* y = row_of<float>(args.y, t) + i_row;
    float value = begin == 0 ? 0 : *y;
    for (int64_t b = 0; b < n; ++b) {
      const auto integer = static_cast<float>(dot(blocks[b].codes, q + 32 * b));
      value += integer * (blocks[b].scale * scales[b]);
      if (kHasMinimum<Source>) value += blocks[b].minimum * sums[b];
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
        for (int64_t b = 0; b < n; b += kSubBlocks<Source>) {
          Source source;
          memcpy(&source, row + (begin + b) / kSubBlocks<Source> * int64_t{sizeof source},
                 sizeof source);
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
    case Storage::kQ4_K:
      return q8::multiply_all<BlockQ4_K>(args, team);
    case Storage::kQ5_K:
      return q8::multiply_all<BlockQ5_K>(args, team);
    default:
      return;  // the row supports no other
  }
}

}  // namespace tessera::TESSERA_ISA
