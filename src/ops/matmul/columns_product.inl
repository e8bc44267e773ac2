// y = x w for weights [K, N] that lie row by row along N: the lanes of a vector are neighbouring
// columns, and every value of y is one chain of fused products over k, the same for every M.
//
// Shared by matmul_columns, matmul_packed and matmul_int4, which differ in how they read w and x.

#pragma once

#include "cpu/simd.hpp"
#include "ops/cpu_views.hpp"
#include "ops/matmul/packed_blocks.hpp"
#include "ops/matmul/unroll.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

/// The values of y that one thread holds in registers: tokens x vectors of columns.
///
/// Few tokens wait for w, and wide panels read more of a row of it at once. Many tokens: 14 x 2
/// accumulators, 2 vectors of w and one of x fill 31 of 32 registers; 6 x 2 fill 15 of 16. A core
/// of two products of vectors a cycle then reads 9 bytes a cycle of a panel from its L2. Panels
/// twice as wide (6 x 4) ask for 21, which a Sapphire Rapids delivers at half of its peak; on an
/// EPYC, one product a cycle, they make no difference.
constexpr int kFewTokens = 6, kFewVecs = TESSERA_TIER >= TESSERA_TIER_AVX512 ? 4 : 2;
constexpr int kManyTokens = kRegisters == 32 ? 14 : 6, kManyVecs = 2;
constexpr int64_t kPanelCols = kManyVecs * kLanes;  // of many tokens
constexpr int64_t kChunkTokens = 84, kChunkCols = 256;

/// A panel of w as f32: `n` rows, `stride` values apart.
struct Panel {
  const float* data;
  int64_t stride, n;
};
/// Which values of y are made of it: at most as many columns as the panel is wide.
struct Target {
  MatrixView y;
  int64_t col_begin, n_cols;
  bool first;  // else sums of earlier slabs wait in y
};

/// `x`: kTokens rows, kXStride apart.
template <int kTokens, int kVecs>
void multiply_panel(const Panel& panel, const float* x, const Target& target,
                    int64_t i_token) noexcept {
  Vec acc[kTokens][kVecs] = {};
  float* y[kTokens];
  int64_t n_lanes[kVecs];
  for (int v = 0; v < kVecs; ++v) {
    n_lanes[v] = max_of(0, min_of(kLanes, target.n_cols - v * kLanes));
  }
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    y[t] = row_of<float>(target.y, i_token + t) + target.col_begin;
    if (target.first) continue;
    TESSERA_UNROLL
    for (int v = 0; v < kVecs; ++v) acc[t][v] = load_first(y[t] + v * kLanes, n_lanes[v]);
  }
  const float* w = panel.data;
  for (int64_t k = 0; k < panel.n; ++k, w += panel.stride) {
    Vec columns[kVecs];
    TESSERA_UNROLL
    for (int v = 0; v < kVecs; ++v) columns[v] = load(w + v * kLanes);
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Vec value = splat(x[t * kXStride + k]);
      TESSERA_UNROLL
      for (int v = 0; v < kVecs; ++v) acc[t][v] = fmadd(value, columns[v], acc[t][v]);
    }
  }
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    TESSERA_UNROLL
    for (int v = 0; v < kVecs; ++v) store_first(y[t] + v * kLanes, acc[t][v], n_lanes[v]);
  }
}

using TileFunction = void (*)(const Panel&, const float*, const Target&, int64_t) noexcept;

/// The kernel for 1 to kMaxTokens tokens.
template <int kMaxTokens, int kVecs>
TileFunction tile_of(int64_t n_tokens) {
  if constexpr (kMaxTokens > 1) {
    if (n_tokens < kMaxTokens) return tile_of<kMaxTokens - 1, kVecs>(n_tokens);
  }
  return multiply_panel<kMaxTokens, kVecs>;
}

/// Part of w: rows of a slab, columns of a chunk.
struct Block {
  int64_t k_begin, n, col_begin, n_cols;
};

/// Copies a block as panels of `width` columns that follow each other, zeros behind the last
/// column. `copy_row(k, col, n_cols, target)` copies part of a row of w. Row by row, so that a page
/// of w is visited once.
template <typename CopyRow>
inline void pack_rows(const Block& block, int64_t width, float* panels, CopyRow copy_row) {
  for (int64_t k = 0; k < block.n; ++k) {
    for (int64_t col = 0; col < block.n_cols; col += width) {
      const int64_t n_cols = min_of(width, block.n_cols - col);
      float* target = panels + col * block.n + k * width;
      copy_row(block.k_begin + k, block.col_begin + col, n_cols, target);
      for (int64_t i = n_cols; i < width; ++i) target[i] = 0;
    }
  }
}

/// `Source` reads the operands:
///   Panel in_place(block)              the block as it lies in w; no data where that is not f32
///   void pack(block, width, panels)    as pack_rows does
///   void copy_activations(i_token, k_begin, n, target)
///   void finish(i_token, col_begin, n_cols)    when sums are complete

/// A chunk is one panel of w, and reads it where it lies if it can.
template <typename Source>
void multiply_few(const Source& source, const MatrixView& y, int64_t n_tokens, int64_t n_values,
                  Team& team) {
  constexpr int64_t kCols = kFewVecs * kLanes;
  alignas(64) float packed[kPackedSlab * kCols];
  alignas(64) float x[kFewTokens * kXStride];
  const TileFunction tile = tile_of<kFewTokens, kFewVecs>(n_tokens);
  const int64_t n_chunks = n_tokens > 0 ? chunks_of(y.n_cols, kCols) : 0;
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t col = chunk * kCols, n_cols = min_of(kCols, y.n_cols - col);
    for (int64_t k = 0; k == 0 || k < n_values; k += kPackedSlab) {
      const Block block = {k, min_of(kPackedSlab, n_values - k), col, n_cols};
      for (int64_t t = 0; t < n_tokens; ++t) {
        source.copy_activations(t, k, block.n, x + t * kXStride);
      }
      Panel panel = source.in_place(block);
      if (!panel.data || n_cols < kCols) {
        source.pack(block, kCols, packed);
        panel = {packed, kCols, block.n};
      }
      tile(panel, x, {y, col, n_cols, k == 0}, 0);
    }
    for (int64_t t = 0; t < n_tokens; ++t) source.finish(t, col, n_cols);
  }
}

/// The operands of one slab, packed.
struct Packed {
  const float *panels, *x;
  int64_t k_begin, n;
};
/// Part of y that one chunk makes.
struct Area {
  int64_t col_begin, n_cols, token_begin, n_tokens;
};

inline void multiply_area(const Packed& packed, const Area& area, const MatrixView& y) {
  for (int64_t col = 0; col < area.n_cols; col += kPanelCols) {
    const Panel panel = {packed.panels + col * packed.n, kPanelCols, packed.n};
    const Target target = {y, area.col_begin + col, min_of(kPanelCols, area.n_cols - col),
                           packed.k_begin == 0};
    for (int64_t t = 0; t < area.n_tokens; t += kManyTokens) {
      const TileFunction tile =
          tile_of<kManyTokens, kManyVecs>(min_of(kManyTokens, area.n_tokens - t));
      tile(panel, packed.x + t * kXStride, target, area.token_begin + t);
    }
  }
}

/// The loops of GotoBLAS (Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix
/// Multiplication"): a slab of x and of w is packed by all threads, each part once, then multiplied
/// by all. `scratch`: packed_scratch_bytes.
template <typename Source>
void multiply_many(const Source& source, const MatrixView& y, int64_t n_tokens, int64_t n_values,
                   float* scratch, Team& team) {
  constexpr int64_t kPackTokens = 32;
  float* const x = scratch;
  float* const panels = scratch + min_of(y.n_rows, kBlockTokens) * kXStride;
  for (int64_t t0 = 0; t0 < n_tokens; t0 += kBlockTokens) {
    const int64_t block_tokens = min_of(kBlockTokens, n_tokens - t0);
    for (int64_t k = 0; k == 0 || k < n_values; k += kPackedSlab) {
      const int64_t n = min_of(kPackedSlab, n_values - k);
      for (int64_t c0 = 0; c0 < y.n_cols; c0 += kBlockCols) {
        const int64_t block_cols = min_of(kBlockCols, y.n_cols - c0);
        const int64_t n_pack_w = chunks_of(block_cols, kChunkCols);
        const int64_t n_pack = n_pack_w + (c0 == 0 ? chunks_of(block_tokens, kPackTokens) : 0);
        for (int64_t chunk; (chunk = team.next_chunk(n_pack)) < n_pack;) {
          if (chunk < n_pack_w) {
            const int64_t col = chunk * kChunkCols;
            source.pack({k, n, c0 + col, min_of(kChunkCols, block_cols - col)}, kPanelCols,
                        panels + col * n);
            continue;
          }
          const int64_t begin = (chunk - n_pack_w) * kPackTokens;
          for (int64_t t = begin; t < min_of(begin + kPackTokens, block_tokens); ++t) {
            source.copy_activations(t0 + t, k, n, x + t * kXStride);
          }
        }
        team.barrier();
        const int64_t n_across = chunks_of(block_cols, kChunkCols);
        const int64_t n_chunks = n_across * chunks_of(block_tokens, kChunkTokens);
        for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
          const int64_t col = chunk % n_across * kChunkCols;
          const int64_t token = chunk / n_across * kChunkTokens;
          const Area area = {c0 + col, min_of(kChunkCols, block_cols - col), t0 + token,
                             min_of(kChunkTokens, block_tokens - token)};
          multiply_area({panels + col * n, x + token * kXStride, k, n}, area, y);
          if (k + n < n_values) continue;
          for (int64_t t = 0; t < area.n_tokens; ++t) {
            source.finish(area.token_begin + t, area.col_begin, area.n_cols);
          }
        }
        team.barrier();
      }
    }
  }
}

}  // namespace columns
}  // namespace
}  // namespace tessera::TESSERA_ISA
