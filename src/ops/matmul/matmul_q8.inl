// y = x w^T with q8 activations and weights of 32-value blocks, on the AVX tiers. The lanes of a
// vector are neighbouring rows of w.
//
// The 32 products of a block are summed as integers, exactly. Then, block after block,
//   y = y + integer * (w scale * x scale), y = y + w minimum * x sum
// each fused: the same bits for every M, and the same on all AVX tiers.

#include "ops/matmul/matmul_cpu.hpp"
#include "ops/matmul/matmul_int_vectors.inl"
#include "ops/matmul/unroll.hpp"
#include "tensor/blocks.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

constexpr bool kHasVnni = TESSERA_TIER == TESSERA_TIER_AVX512VNNI;

/// One block of kLanes rows: lane r of codes[g] has values 4 g to 4 g + 3 of row r.
struct BlockOfRows {
  Ints codes[8];
  Vec scale, minimum;  // minimum: only where the format has one
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

// Formats: load() reads one block of kLanes rows. A weight's integer is code - kOffset; the
// offset's share of a sum, -kOffset * the sum of q, is exact too. |code| <= kMaxCode.

struct FormatQ4_0 {
  static constexpr int kBytes = sizeof(BlockQ4_0), kMaxCode = 15, kOffset = 8;
  static constexpr bool kSigned = false, kHasMinimum = false;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 2, stride, groups);
    split_nibbles(groups, b.codes);
    b.scale = low_halves(gather_ints(block, offsets));
  }
};

struct FormatQ4_1 {
  static constexpr int kBytes = sizeof(BlockQ4_1), kMaxCode = 15, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 4, stride, groups);
    split_nibbles(groups, b.codes);
    const Ints halves = gather_ints(block, offsets);
    b.scale = low_halves(halves);
    b.minimum = low_halves(shift_right<16>(halves));
  }
};

struct FormatQ5_0 {
  static constexpr int kBytes = sizeof(BlockQ5_0), kMaxCode = 31, kOffset = 16;
  static constexpr bool kSigned = false, kHasMinimum = false;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 6, stride, groups);
    split_nibbles(groups, b.codes);
    add_fifth_bits(gather_ints(block + 2, offsets), b.codes);
    b.scale = low_halves(gather_ints(block, offsets));
  }
};

struct FormatQ5_1 {
  static constexpr int kBytes = sizeof(BlockQ5_1), kMaxCode = 31, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  static void load(const unsigned char* block, int64_t stride, Ints offsets, BlockOfRows& b) {
    Ints groups[4];
    load_groups(block + 8, stride, groups);
    split_nibbles(groups, b.codes);
    add_fifth_bits(gather_ints(block + 4, offsets), b.codes);
    const Ints halves = gather_ints(block, offsets);
    b.scale = low_halves(halves);
    b.minimum = low_halves(shift_right<16>(halves));
  }
};

/// VNNI multiplies unsigned by signed bytes: signed values get an offset. The older instructions
/// would saturate then; they move the sign to x instead.
struct FormatQ8_0 {
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
    b.scale = low_halves(gather_ints(block, offsets));
  }
};

/// dots[r][t] += the products of a block of kRows vectors of rows with 32 values of kTokens tokens.
#if TESSERA_TIER == TESSERA_TIER_AVX512VNNI
template <typename Format, int kRows, int kTokens>
inline void dot_block(const Ints (*codes)[8], const int8_t* const* x, Ints (*dots)[kTokens]) {
  TESSERA_UNROLL
  for (int g = 0; g < 8; ++g) {
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Ints four = splat_four_bytes(x[t] + 4 * g);
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        dots[r][t] = _mm512_dpbusd_epi32(dots[r][t], codes[r][g], four);
      }
    }
  }
}
#else
#if TESSERA_TIER == TESSERA_TIER_AVX512
inline Ints magnitudes(Ints a) {
  return _mm512_abs_epi8(a);
}
/// a, negated where `sign` is negative.
inline Ints move_sign(Ints a, Ints sign) {
  return _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(sign), _mm512_setzero_si512(), a);
}
inline Ints multiply_bytes(Ints a, Ints b) {
  return _mm512_maddubs_epi16(a, b);
}
inline Ints add_shorts(Ints a, Ints b) {
  return _mm512_add_epi16(a, b);
}
inline Ints add_pairs(Ints a) {
  return _mm512_madd_epi16(a, _mm512_set1_epi16(1));
}
#else
inline Ints magnitudes(Ints a) {
  return _mm256_abs_epi8(a);
}
inline Ints move_sign(Ints a, Ints sign) {
  return _mm256_sign_epi8(a, sign);
}
inline Ints multiply_bytes(Ints a, Ints b) {
  return _mm256_maddubs_epi16(a, b);
}
inline Ints add_shorts(Ints a, Ints b) {
  return _mm256_add_epi16(a, b);
}
inline Ints add_pairs(Ints a) {
  return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}
#endif

template <typename Format, int kRows, int kTokens>
inline void dot_block(const Ints (*codes)[8], const int8_t* const* x, Ints (*dots)[kTokens]) {
  // A product of two pairs is at most 2 * 127 kMaxCode; so many of them fit into 16 bits.
  constexpr int kGroups = 32767 / (2 * 127 * Format::kMaxCode);
  TESSERA_UNROLL
  for (int begin = 0; begin < 8; begin += kGroups) {
    Ints shorts[kRows][kTokens];
    TESSERA_UNROLL
    for (int g = begin; g < (begin + kGroups < 8 ? begin + kGroups : 8); ++g) {
      TESSERA_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        const Ints four = splat_four_bytes(x[t] + 4 * g);
        TESSERA_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const Ints w = codes[r][g];
          const Ints products = Format::kSigned ? multiply_bytes(magnitudes(w), move_sign(four, w))
                                                : multiply_bytes(w, four);
          shorts[r][t] = g == begin ? products : add_shorts(shorts[r][t], products);
        }
      }
    }
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) dots[r][t] = add_ints(dots[r][t], add_pairs(shorts[r][t]));
    }
  }
}
#endif

// Two vectors of rows x 6 tokens: 12 integer and 12 float accumulators of 32 registers, 8 loads
// for 12 products. With 16 registers one vector x 4 tokens.
#if TESSERA_TIER >= TESSERA_TIER_AVX512
constexpr int kPanelVecs = 2, kTokenTile = 6;
#else
constexpr int kPanelVecs = 1, kTokenTile = 4;
#endif
constexpr int64_t kPanelRows = kPanelVecs * kLanes;
constexpr int64_t kSlabBlocks = 64;    // a panel of 2,048 values x 32 rows is 64 KiB: part of an L2
constexpr int64_t kChunkTokens = 192;  // that one panel, decoded once, is used for

/// The blocks of kPanelRows rows in one slab of K.
struct Panel {
  Ints codes[kSlabBlocks][kPanelVecs][8];
  Vec scale[kSlabBlocks][kPanelVecs], minimum[kSlabBlocks][kPanelVecs];
};

/// Tokens as the kernels read them, from the first block of a slab on.
template <int kTokens>
struct TokenTile {
  const int8_t* q[kTokens];
  const float* scale[kTokens];
  const float* sum[kTokens];
  int32_t offset[kTokens][kSlabBlocks];  // what the format's offset adds: -kOffset * sum of q
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
    if (Format::kOffset == 0) continue;
    for (int64_t b = 0; b < n_blocks; ++b) {
      int32_t sum = 0;
      for (int i = 0; i < 32; ++i) sum += tile.q[t][32 * b + i];
      tile.offset[t][b] = -Format::kOffset * sum;
    }
  }
}

/// acc[r][t] gains the products of block `b` of kRows vectors of rows.
template <typename Format, int kRows, int kTokens>
inline void add_block(const Ints (*codes)[8], const Vec* scale, const Vec* minimum,
                      const TokenTile<kTokens>& x, int64_t b, Vec (*acc)[kTokens]) {
  Ints dots[kRows][kTokens];
  const int8_t* q[kTokens];
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    q[t] = x.q[t] + 32 * b;
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      dots[r][t] = splat_ints(Format::kOffset ? x.offset[t][b] : 0);
    }
  }
  dot_block<Format, kRows, kTokens>(codes, q, dots);
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    const Vec x_scale = splat(x.scale[t][b]);
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      acc[r][t] = fmadd(ints_to_float(dots[r][t]), scale[r] * x_scale, acc[r][t]);
    }
    if (!Format::kHasMinimum) continue;
    const Vec x_sum = splat(x.sum[t][b]);
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) acc[r][t] = fmadd(minimum[r], x_sum, acc[r][t]);
  }
}

/// Blocks of K in work.
struct Slab {
  int64_t begin, n;
  bool first, last;
};

/// kLanes rows of w from a slab's first block on. Rows that w lacks are zeros in `copy`.
struct RowTile {
  const unsigned char* data;
  int64_t stride;
};
template <typename Format>
inline RowTile row_tile(const MatrixView& w, int64_t i_row, const Slab& slab, unsigned char* copy) {
  const unsigned char* source = row_of<const unsigned char>(w, i_row) + slab.begin * Format::kBytes;
  if (i_row + kLanes <= w.n_rows) return {source, w.stride_bytes};
  const int64_t size = slab.n * Format::kBytes;
  memset(copy, 0, static_cast<size_t>(kLanes * size));
  for (int64_t r = 0; i_row + r < w.n_rows; ++r) {
    memcpy(copy + r * size, source + r * w.stride_bytes, static_cast<size_t>(size));
  }
  return {copy, size};
}

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

/// One token: every block goes from memory through registers once.
template <typename Format>
void multiply_one_token(const MatmulCpuArgs& args, int64_t row_begin, int64_t row_end,
                        const Slab& slab) {
  alignas(64) unsigned char copy[kLanes * kSlabBlocks * Format::kBytes];
  TokenTile<1> x;
  load_tokens<Format>(args.x, 0, slab.begin, slab.n, x);
  for (int64_t i_row = row_begin; i_row < row_end; i_row += kLanes) {
    const RowTile tile = row_tile<Format>(args.w, i_row, slab, copy);
    const Ints offsets = lane_multiples(tile.stride);
    // The chunk's next tile; behind the last one this one again, which costs nothing.
    const bool more = i_row + 2 * kLanes <= row_end;
    Prefetcher next({more ? tile.data + kLanes * tile.stride : tile.data, tile.stride},
                    slab.n * Format::kBytes);
    Vec acc[1][1] = {{sums_so_far(args, 0, i_row, slab)}};
    for (int64_t b = 0; b < slab.n; ++b) {
      next.advance(kLanes * Format::kBytes);
      BlockOfRows w;
      Format::load(tile.data + b * Format::kBytes, tile.stride, offsets, w);
      add_block<Format, 1, 1>(&w.codes, &w.scale, &w.minimum, x, b, acc);
    }
    put_sums(args, 0, i_row, slab, acc[0][0]);
  }
}

template <typename Format, int kTokens>
void multiply_panel(const MatmulCpuArgs& args, const Panel& panel, int64_t i_row, int64_t i_token,
                    const Slab& slab) noexcept {
  TokenTile<kTokens> x;
  load_tokens<Format>(args.x, i_token, slab.begin, slab.n, x);
  const int64_t n_vecs = min_of(kPanelVecs, chunks_of(args.y.n_cols - i_row, kLanes));
  Vec acc[kPanelVecs][kTokens] = {};
  for (int64_t r = 0; r < n_vecs; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      acc[r][t] = sums_so_far(args, i_token + t, i_row + r * kLanes, slab);
    }
  }
  for (int64_t b = 0; b < slab.n; ++b) {
    add_block<Format, kPanelVecs, kTokens>(panel.codes[b], panel.scale[b], panel.minimum[b], x, b,
                                           acc);
  }
  for (int64_t r = 0; r < n_vecs; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      put_sums(args, i_token + t, i_row + r * kLanes, slab, acc[r][t]);
    }
  }
}

using PanelFunction = void (*)(const MatmulCpuArgs&, const Panel&, int64_t, int64_t,
                               const Slab&) noexcept;

template <typename Format>
void multiply_tokens(const MatmulCpuArgs& args, int64_t i_row, int64_t token_begin,
                     int64_t token_end, const Slab& slab) {
  static constexpr PanelFunction kTiles[] = {
    nullptr,
    multiply_panel<Format, 1>,
    multiply_panel<Format, 2>,
    multiply_panel<Format, 3>,
    multiply_panel<Format, 4>,
#if TESSERA_TIER >= TESSERA_TIER_AVX512
    multiply_panel<Format, 5>,
    multiply_panel<Format, 6>,
#endif
  };
  alignas(64) unsigned char copy[kLanes * kSlabBlocks * Format::kBytes];
  Panel panel;
  for (int64_t r = 0; r < kPanelVecs; ++r) {
    // A vector of rows wholly behind the last one: its results go nowhere.
    const int64_t first = min_of(i_row + r * kLanes, args.w.n_rows - 1);
    const RowTile tile = row_tile<Format>(args.w, first, slab, copy);
    const Ints offsets = lane_multiples(tile.stride);
    for (int64_t b = 0; b < slab.n; ++b) {
      BlockOfRows w;
      Format::load(tile.data + b * Format::kBytes, tile.stride, offsets, w);
      TESSERA_UNROLL
      for (int g = 0; g < 8; ++g) panel.codes[b][r][g] = w.codes[g];
      panel.scale[b][r] = w.scale;
      if (Format::kHasMinimum) panel.minimum[b][r] = w.minimum;
    }
  }
  for (int64_t t = token_begin; t < token_end; t += kTokenTile) {
    kTiles[min_of(kTokenTile, token_end - t)](args, panel, i_row, t, slab);
  }
}

template <typename Format>
void multiply_all(const MatmulCpuArgs& args, Team& team) {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows), n_rows = args.y.n_cols;
  const int64_t n_blocks = args.x.n_cols / 32;
  const int64_t chunk_rows = n_tokens > 1 ? kPanelRows : few_tokens_chunk_rows(n_rows);
  const int64_t n_across = chunks_of(n_rows, chunk_rows);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t row_begin = chunk % n_across * chunk_rows;
    const int64_t row_end = min_of(row_begin + chunk_rows, n_rows);
    const int64_t token_begin = chunk / n_across * kChunkTokens;
    const int64_t token_end = min_of(token_begin + kChunkTokens, n_tokens);
    for (int64_t begin = 0; begin == 0 || begin < n_blocks; begin += kSlabBlocks) {
      const int64_t n = min_of(kSlabBlocks, n_blocks - begin);
      const Slab slab = {begin, n, begin == 0, begin + n == n_blocks};
      if (n_tokens == 1) {
        multiply_one_token<Format>(args, row_begin, row_end, slab);
      } else {
        multiply_tokens<Format>(args, row_begin, token_begin, token_end, slab);
      }
    }
  }
}

}  // namespace q8
}  // namespace

void matmul_q8(const MatmulCpuArgs& args, Team& team) noexcept {
  switch (args.w_type) {
    case Storage::kQ4_0:
      return q8::multiply_all<q8::FormatQ4_0>(args, team);
    case Storage::kQ4_1:
      return q8::multiply_all<q8::FormatQ4_1>(args, team);
    case Storage::kQ5_0:
      return q8::multiply_all<q8::FormatQ5_0>(args, team);
    case Storage::kQ5_1:
      return q8::multiply_all<q8::FormatQ5_1>(args, team);
    case Storage::kQ8_0:
      return q8::multiply_all<q8::FormatQ8_0>(args, team);
    default:
      return;  // the row supports no other
  }
}

}  // namespace tessera::TESSERA_ISA
