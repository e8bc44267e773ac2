// The products of q8 blocks by vector instructions: included by matmul_q8.inl.

#include "ops/matmul/matmul_q8_formats.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

/// dots[r][t] += the products of kRows vectors of rows with kTokens tokens, from group kBegin (of
/// four values) of a block of 32 up to kEnd.
#if TESSERA_TIER >= TESSERA_TIER_AVX512VNNI
template <typename Format, int kBegin, int kEnd, int kRows, int kTokens>
inline void dot_groups(const Ints (*codes)[8], const int8_t* const* x, Ints (*dots)[kTokens]) {
  TESSERA_UNROLL
  for (int g = kBegin; g < kEnd; ++g) {
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

template <typename Format, int kBegin, int kEnd, int kRows, int kTokens>
inline void dot_groups(const Ints (*codes)[8], const int8_t* const* x, Ints (*dots)[kTokens]) {
  // A product of two pairs is at most 2 * 127 kMaxCode; so many of them fit into 16 bits.
  constexpr int kGroups = 32767 / (2 * 127 * Format::kMaxCode);
  TESSERA_UNROLL
  for (int begin = kBegin; begin < kEnd; begin += kGroups) {
    Ints shorts[kRows][kTokens];
    TESSERA_UNROLL
    for (int g = begin; g < (begin + kGroups < kEnd ? begin + kGroups : kEnd); ++g) {
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

/// acc[r][t] gains the products of part kPart of block `b` of kRows vectors of rows.
template <typename Format, int kPart, int kRows, int kTokens>
inline void add_part(const Ints (*codes)[8], const Vec* scale, const Vec* minimum,
                     const TokenTile<kTokens>& x, int64_t b, Vec (*acc)[kTokens]) {
  constexpr int kGroups = 8 / Format::kParts;
  const int64_t part = b * Format::kParts + kPart;
  Ints dots[kRows][kTokens];
  const int8_t* q[kTokens];
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    q[t] = x.q[t] + 32 * b;
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      dots[r][t] = splat_ints(Format::kOffset ? x.offset[t][part] : 0);
    }
  }
  dot_groups<Format, kPart * kGroups, (kPart + 1) * kGroups, kRows>(codes, q, dots);
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    const Vec x_scale = splat(x.scale[t][b]);
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      acc[r][t] = fmadd(ints_to_float(dots[r][t]), scale[r] * x_scale, acc[r][t]);
    }
    if (!Format::kHasMinimum) continue;
    const Vec x_sum = splat(x.sum[t][part]);
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r) acc[r][t] = fmadd(minimum[r], x_sum, acc[r][t]);
  }
}

/// acc[r][t] gains the products of block `b`; scale and minimum: of each part, then vector of rows.
template <typename Format, int kRows, int kTokens>
inline void add_block(const Ints (*codes)[8], const Vec* scale, const Vec* minimum,
                      const TokenTile<kTokens>& x, int64_t b, Vec (*acc)[kTokens]) {
  add_part<Format, 0, kRows>(codes, scale, minimum, x, b, acc);
  if constexpr (Format::kParts == 2) {
    add_part<Format, 1, kRows>(codes, scale + kRows, minimum + kRows, x, b, acc);
  }
}

/// Vector instructions need no preparation.
struct TileSetup {
  void expect(int64_t) const {}
};

/// One token: every block goes from memory through registers once.
template <typename Format>
void multiply_one_token(const MatmulCpuArgs& args, int64_t row_begin, int64_t row_end,
                        const Slab& slab) {
  alignas(64) unsigned char copy[kLanes * row_bytes<Format>(kSlabBlocks)];
  TokenTile<1> x;
  load_tokens<Format>(args.x, 0, slab.begin, slab.n, x);
  for (int64_t i_row = row_begin; i_row < row_end; i_row += kLanes) {
    const RowTile tile = row_tile<Format>(args.w, i_row, slab, copy);
    const Ints offsets = lane_multiples(tile.stride);
    // The chunk's next tile; behind the last one this one again, which costs nothing.
    const bool more = i_row + 2 * kLanes <= row_end;
    Prefetcher next({more ? tile.data + kLanes * tile.stride : tile.data, tile.stride},
                    row_bytes<Format>(slab.n));
    Vec acc[1][1] = {{sums_so_far(args, 0, i_row, slab)}};
    for (int64_t b = 0; b < slab.n; b += Format::kSubBlocks) {
      typename Format::Words words;
      Format::load(tile.data + row_bytes<Format>(b), tile.stride, offsets, words);
      for (int s = 0; s < Format::kSubBlocks; ++s) {
        next.advance(kLanes * Format::kBytes / Format::kSubBlocks);
        const BlockOfRows& w = Format::sub_block(words, s);
        add_block<Format, 1>(&w.codes, w.scale, w.minimum, x, b + s, acc);
      }
    }
    put_sums(args, 0, i_row, slab, acc[0][0]);
  }
}

template <typename Format, int kTokens>
void multiply_token_tile(const MatmulCpuArgs& args, const Panel& panel, int64_t i_row,
                         int64_t i_token, const Slab& slab) noexcept {
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
    const int64_t part = b * Format::kParts;
    add_block<Format, kPanelVecs>(panel.codes[b], panel.scale[part], panel.minimum[part], x, b,
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

/// A panel x n_tokens <= kTokenTile tokens.
template <typename Format>
void multiply_panel(const MatmulCpuArgs& args, const Panel& panel, int64_t i_row, int64_t i_token,
                    int64_t n_tokens, const Slab& slab) {
  static constexpr PanelFunction kTiles[] = {
    nullptr,
    multiply_token_tile<Format, 1>,
    multiply_token_tile<Format, 2>,
    multiply_token_tile<Format, 3>,
    multiply_token_tile<Format, 4>,
#if TESSERA_TIER >= TESSERA_TIER_AVX512
    multiply_token_tile<Format, 5>,
    multiply_token_tile<Format, 6>,
#endif
  };
  kTiles[n_tokens](args, panel, i_row, i_token, slab);
}

}  // namespace q8
}  // namespace
}  // namespace tessera::TESSERA_ISA
