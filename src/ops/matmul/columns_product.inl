// y = x w for weights [K, N] that lie row by row along N: the lanes of a vector are neighbouring
// columns, and every value of y is one chain of fused products over k, the same for every M.
//
// Shared by matmul_columns and matmul_int4, which differ in how they read w and x.

#pragma once

#include "cpu/simd.hpp"
#include "ops/cpu_views.hpp"
#include "ops/matmul/unroll.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

/// The values of y that one thread holds in registers: tokens x vectors of columns.
///
/// Few tokens wait for w, and wide panels read more of a row of it at once. Many tokens are bound
/// by the cache that a panel comes from: 256 x 32 values are 32 KiB, which stay in an L1 while x
/// streams past at 4 bytes a cycle (panels of 64 columns stream from an L2 at 21 bytes a cycle,
/// which feeds half of the peak of a Sapphire Rapids). 14 x 2 accumulators, 2 vectors of w and one
/// of x fill 31 of 32 registers; 6 x 2 fill 15 of 16.
constexpr int kFewTokens = 6, kFewVecs = TESSERA_TIER >= TESSERA_TIER_AVX512 ? 4 : 2;
constexpr int kManyTokens = kRegisters == 32 ? 14 : 6, kManyVecs = 2;
constexpr int64_t kSlab = 256;
// Rows of x are copied to a constant distance, so that one register addresses all of a tile's; the
// 16 values more spread them over the sets of a cache.
constexpr int64_t kXStride = kSlab + 16;
constexpr int64_t kChunkTokens = 14 * kManyTokens, kChunkPanels = 4;

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

/// Part of y that one chunk makes.
struct Area {
  int64_t col_begin, col_end, token_begin, token_end;
};

template <int kTokens, int kVecs, typename Source>
void multiply_area(const Source& source, const MatrixView& y, const Area& area, int64_t n_values,
                   float* x_buffer) {
  constexpr int64_t kPanelCols = kVecs * kLanes;
  alignas(64) float panel_buffer[kSlab * kPanelCols];
  for (int64_t k = 0; k == 0 || k < n_values; k += kSlab) {
    const int64_t n = min_of(kSlab, n_values - k);
    for (int64_t t = area.token_begin; t < area.token_end; ++t) {
      source.copy_activations(t, k, n, x_buffer + (t - area.token_begin) * kXStride);
    }
    for (int64_t col = area.col_begin; col < area.col_end; col += kPanelCols) {
      const int64_t n_cols = min_of(kPanelCols, area.col_end - col);
      const Panel panel = source.panel(k, n, col, n_cols, kPanelCols, panel_buffer);
      for (int64_t t = area.token_begin; t < area.token_end; t += kTokens) {
        const TileFunction tile = tile_of<kTokens, kVecs>(min_of(kTokens, area.token_end - t));
        tile(panel, x_buffer + (t - area.token_begin) * kXStride, {y, col, n_cols, k == 0}, t);
      }
    }
  }
}

/// `Source` reads the operands:
///   Panel panel(k_begin, n, col_begin, n_cols, width, buffer)
///       w as f32, `width` columns: those behind the last one readable (whatever they hold)
///   void copy_activations(i_token, k_begin, n, target)
///   void finish(i_token, col_begin, n_cols)    when sums are complete
template <typename Source>
void multiply(const Source& source, const MatrixView& y, int64_t n_tokens, int64_t n_values,
              Team& team) {
  const bool few = n_tokens <= kFewTokens;
  const int64_t chunk_cols = (few ? kFewVecs : kChunkPanels * kManyVecs) * kLanes;
  alignas(64) float x_buffer[kChunkTokens * kXStride];
  const int64_t n_across = chunks_of(y.n_cols, chunk_cols);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    Area area;
    area.col_begin = chunk % n_across * chunk_cols;
    area.col_end = min_of(area.col_begin + chunk_cols, y.n_cols);
    area.token_begin = chunk / n_across * kChunkTokens;
    area.token_end = min_of(area.token_begin + kChunkTokens, n_tokens);
    if (few) {
      multiply_area<kFewTokens, kFewVecs>(source, y, area, n_values, x_buffer);
    } else {
      multiply_area<kManyTokens, kManyVecs>(source, y, area, n_values, x_buffer);
    }
    for (int64_t t = area.token_begin; t < area.token_end; ++t) {
      source.finish(t, area.col_begin, area.col_end - area.col_begin);
    }
  }
}

}  // namespace columns
}  // namespace
}  // namespace tessera::TESSERA_ISA
