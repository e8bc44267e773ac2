// What the products of q8 blocks share on the AVX tiers: weight blocks decoded from each format,
// tokens as the kernels read them, and where sums go.

#pragma once

#include "ops/matmul/matmul_cpu.hpp"
#include "ops/matmul/matmul_int_vectors.inl"
#include "ops/matmul/unroll.hpp"
#include "tensor/blocks.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

constexpr bool kHasVnni = TESSERA_TIER == TESSERA_TIER_AVX512VNNI;
// Tiles multiply signed bytes: there codes are the weights' integers.
constexpr bool kHasTiles = TESSERA_TIER == TESSERA_TIER_AMX;

/// 32 values of kLanes rows: lane r of codes[g] has values 4 g to 4 g + 3 of row r.
struct BlockOfRows {
  Ints codes[8];
  Vec scale[2], minimum[2];  // of each part; minimum: only where the format has one
};

/// Nibbles: the low ones are a block's first half.
inline void split_nibbles(const Ints* groups, Ints* codes) {
  const Ints mask = splat_ints(0x0f0f0f0f);
  TESSERA_UNROLL
  for (int g = 0; g < 4; ++g) {
    codes[g] = and_ints(groups[g], mask);
    codes[4 + g] = and_ints(shift_right<4>(groups[g]), mask);
  }
}

/// Integers of codes, where the products are of signed bytes.
template <int kOffset>
inline void make_signed(Ints* codes) {
#if TESSERA_TIER == TESSERA_TIER_AMX
  TESSERA_UNROLL
  for (int g = 0; g < 8; ++g) codes[g] = _mm512_sub_epi8(codes[g], _mm512_set1_epi8(kOffset));
#else
  static_cast<void>(codes);
#endif
}

/// Adds 16 times bit i of `bits` to value i.
inline void add_fifth_bits(Ints bits, Ints* codes) {
  TESSERA_UNROLL
  for (int g = 0; g < 8; ++g) {
    // Bits 0 to 3 go to bit 4 of bytes 0 to 3: shifted by 4, 11, 18 and 25.
    const Ints four = and_ints(bits, splat_ints(15));
    const Ints spread = multiply_ints(four, splat_ints(0x02040810));
    codes[g] = or_ints(codes[g], and_ints(spread, splat_ints(0x10101010)));
    bits = shift_right<4>(bits);
  }
}

// Formats: load() reads kBytes of kLanes rows, in which sub_block() finds kSubBlocks x 32 values,
// of which kParts (1 or 2) equal parts have a scale of their own. A weight's integer is code -
// kOffset; the offset's share of a sum, -kOffset * the sum of q, is exact too. |code| <= kMaxCode.

struct FormatOf32 {
  static constexpr int kSubBlocks = 1, kParts = 1;
  using Words = BlockOfRows;
  static const BlockOfRows& sub_block(const Words& words, int) { return words; }
};

/// Bytes that a row has for so many blocks of 32 values, a multiple of kSubBlocks.
template <typename Format>
constexpr int64_t row_bytes(int64_t n_blocks) {
  return n_blocks / Format::kSubBlocks * Format::kBytes;
}

struct FormatQ4_0 : FormatOf32 {
  static constexpr int kBytes = sizeof(BlockQ4_0), kMaxCode = 15, kOffset = kHasTiles ? 0 : 8;
  static constexpr bool kSigned = false, kHasMinimum = false;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 2, stride, groups);
    split_nibbles(groups, b.codes);
    make_signed<8>(b.codes);
    b.scale[0] = low_halves(gather_ints(block, offsets));
  }
};

struct FormatQ4_1 : FormatOf32 {
  static constexpr int kBytes = sizeof(BlockQ4_1), kMaxCode = 15, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 4, stride, groups);
    split_nibbles(groups, b.codes);
    const Ints halves = gather_ints(block, offsets);
    b.scale[0] = low_halves(halves);
    b.minimum[0] = low_halves(shift_right<16>(halves));
  }
};

struct FormatQ5_0 : FormatOf32 {
  static constexpr int kBytes = sizeof(BlockQ5_0), kMaxCode = 31, kOffset = kHasTiles ? 0 : 16;
  static constexpr bool kSigned = false, kHasMinimum = false;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 6, stride, groups);
    split_nibbles(groups, b.codes);
    add_fifth_bits(gather_ints(block + 2, offsets), b.codes);
    make_signed<16>(b.codes);
    b.scale[0] = low_halves(gather_ints(block, offsets));
  }
};

struct FormatQ5_1 : FormatOf32 {
  static constexpr int kBytes = sizeof(BlockQ5_1), kMaxCode = 31, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 8, stride, groups);
    split_nibbles(groups, b.codes);
    add_fifth_bits(gather_ints(block + 4, offsets), b.codes);
    const Ints halves = gather_ints(block, offsets);
    b.scale[0] = low_halves(halves);
    b.minimum[0] = low_halves(shift_right<16>(halves));
  }
};

/// VNNI multiplies unsigned by signed bytes: signed values get an offset. The older instructions
/// would saturate then; they move the sign to x instead.
struct FormatQ8_0 : FormatOf32 {
  static constexpr int kBytes = sizeof(BlockQ8_0), kMaxCode = 128, kOffset = kHasVnni ? 128 : 0;
  static constexpr bool kSigned = !kHasVnni, kHasMinimum = false;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    load_groups(block + 2, stride, b.codes);
    load_groups(block + 18, stride, b.codes + 4);
#if TESSERA_TIER == TESSERA_TIER_AVX512VNNI
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      b.codes[g] = _mm512_xor_si512(b.codes[g], splat_ints(INT32_MIN | 0x00808080));
    }
#endif
    b.scale[0] = low_halves(gather_ints(block, offsets));
  }
};

// Two vectors of rows x 6 tokens: 12 integer and 12 float accumulators of 32 registers, 8 loads
// for 12 products. Tiles: 16 tokens. With 16 registers one vector x 4 tokens.
#if TESSERA_TIER == TESSERA_TIER_AMX
constexpr int kPanelVecs = 2, kTokenTile = 16;
#elif TESSERA_TIER >= TESSERA_TIER_AVX512
constexpr int kPanelVecs = 2, kTokenTile = 6;
#else
constexpr int kPanelVecs = 1, kTokenTile = 4;
#endif
constexpr int64_t kPanelRows = kPanelVecs * kLanes;
// A panel of 2,048 values x 32 rows is 64 KiB: part of an L2. Blocks of 256 values stay whole.
constexpr int64_t kSlabBlocks = 64;
// Tokens that one panel, decoded once, is used for.
constexpr int64_t kChunkTokens = kHasTiles ? 512 : 192;

/// The blocks of kPanelRows rows in one slab of K.
struct Panel {
  Ints codes[kSlabBlocks][kPanelVecs][8];
  Vec scale[2 * kSlabBlocks][kPanelVecs], minimum[2 * kSlabBlocks][kPanelVecs];  // of each part
};

/// Tokens as the kernels read them, from the first block of a slab on.
template <int kTokens>
struct TokenTile {
  const int8_t* q[kTokens];
  const float* scale[kTokens];
  const float* sum[kTokens];                 // of each part
  int32_t offset[kTokens][2 * kSlabBlocks];  // what the format's offset adds to a part
  float part_sums[kTokens][2 * kSlabBlocks];
};

template <typename Format, int kTokens>
inline void load_tokens(const MatrixView& x, int64_t i_token, int64_t i_block, int64_t n_blocks,
                        TokenTile<kTokens>& tile) {
  const int64_t n_row_blocks = x.n_cols / 32;
  for (int t = 0; t < kTokens; ++t) {
    const unsigned char* row = row_of<const unsigned char>(x, i_token + t);
    tile.scale[t] = reinterpret_cast<const float*>(row) + i_block;
    tile.sum[t] = tile.scale[t] + n_row_blocks;
    tile.q[t] = reinterpret_cast<const int8_t*>(row + 8 * n_row_blocks) + 32 * i_block;
    constexpr bool kNeedsPartSums = Format::kHasMinimum && Format::kParts > 1;
    if (kNeedsPartSums) tile.sum[t] = tile.part_sums[t];
    if (Format::kOffset == 0 && !kNeedsPartSums) continue;
    constexpr int kPartValues = 32 / Format::kParts;
    for (int64_t p = 0; p < n_blocks * Format::kParts; ++p) {
      int32_t sum = 0;
      for (int i = 0; i < kPartValues; ++i) sum += tile.q[t][kPartValues * p + i];
      tile.offset[t][p] = -Format::kOffset * sum;
      if (kNeedsPartSums) {
        tile.part_sums[t][p] = static_cast<float>(sum) * tile.scale[t][p / Format::kParts];
      }
    }
  }
}

/// Blocks of K in work.
struct Slab {
  int64_t begin, n;
  bool first, last;
};

/// kLanes rows of w from a slab's first block on. Rows that w lacks are zeros in `copy`, of
/// kLanes * row_bytes<Format>(kSlabBlocks) bytes.
struct RowTile {
  const unsigned char* data;
  int64_t stride;
};
template <typename Format>
inline RowTile row_tile(const MatrixView& w, int64_t i_row, const Slab& slab, unsigned char* copy) {
  const unsigned char* source =
      row_of<const unsigned char>(w, i_row) + row_bytes<Format>(slab.begin);
  if (i_row + kLanes <= w.n_rows) return {source, w.stride_bytes};
  const int64_t size = row_bytes<Format>(slab.n);
  memset(copy, 0, static_cast<size_t>(kLanes * size));
  for (int64_t r = 0; i_row + r < w.n_rows; ++r) {
    memcpy(copy + r * size, source + r * w.stride_bytes, static_cast<size_t>(size));
  }
  return {copy, size};
}

/// Asks for the rows of a tile ahead of their use, a few cache lines at a time: each of the kLanes
/// streams is too short for the hardware to find.
class Prefetcher {
 public:
  Prefetcher(const RowTile& tile, int64_t row_size)
      : row_(tile.data), stride_(tile.stride), row_size_(row_size) {}
  void advance(int64_t n_bytes) {
    for (int64_t i = 0; i < n_bytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(row_ + at_), _MM_HINT_T0);
      at_ += 64;
      if (at_ < row_size_) continue;
      at_ = 0;
      row_ += stride_;
    }
  }

 private:
  const unsigned char* row_;
  int64_t stride_, row_size_, at_ = 0;
};

/// kLanes values of y of one token. Sums of earlier slabs wait in y.
inline Vec sums_so_far(const MatmulCpuArgs& args, int64_t i_token, int64_t i_row,
                       const Slab& slab) {
  if (slab.first) return Vec{};
  const float* y = row_of<const float>(args.y, i_token) + i_row;
  return load_first(y, min_of(kLanes, args.y.n_cols - i_row));
}
inline void put_sums(const MatmulCpuArgs& args, int64_t i_token, int64_t i_row, const Slab& slab,
                     Vec value) {
  const int64_t n = min_of(kLanes, args.y.n_cols - i_row);
  if (slab.last && args.bias) value += load_first(args.bias + i_row, n);
  if (slab.last && args.residual.data) {
    value += load_first(row_of<const float>(args.residual, i_token) + i_row, n);
  }
  store_first(row_of<float>(args.y, i_token) + i_row, value, n);
}

}  // namespace q8
}  // namespace
}  // namespace tessera::TESSERA_ISA
