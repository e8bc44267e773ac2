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

// 6 tokens x 4 vectors: 24 accumulators of 32 registers, 10 loads for 24 products; 12 of 16
// registers on the narrower tiers.
constexpr int kTokenTile = 6, kVecs = TESSERA_TIER >= TESSERA_TIER_AVX512 ? 4 : 2;
constexpr int64_t kPanelCols = kVecs * kLanes;
constexpr int64_t kSlab = 256;  // a panel is 64 KiB on AVX-512: part of an L2 cache
constexpr int64_t kChunkTokens = 192;

/// A panel of w as f32: `n` rows, `stride` values apart.
struct Panel {
  const float* data;
  int64_t stride, n;
};
/// Which values of y are made of it: kPanelCols columns or fewer.
struct Target {
  MatrixView y;
  int64_t col_begin, n_cols;
  bool first;  // else sums of earlier slabs wait in y
};

template <int kTokens>
void multiply_panel(const Panel& panel, const float* const* x, const Target& target,
                    int64_t i_token) noexcept {
  Vec acc[kTokens][kVecs] = {};
  float* y[kTokens];
  int64_t n_lanes[kVecs];
  for (int v = 0; v < kVecs; ++v) {
    n_lanes[v] = max_of(0, min_of(kLanes, target.n_cols - v * kLanes));
  }
  for (int t = 0; t < kTokens; ++t) {
    y[t] = row_of<float>(target.y, i_token + t) + target.col_begin;
    if (target.first) continue;
    for (int v = 0; v < kVecs; ++v) acc[t][v] = load_first(y[t] + v * kLanes, n_lanes[v]);
  }
  const float* w = panel.data;
  for (int64_t k = 0; k < panel.n; ++k, w += panel.stride) {
    Vec columns[kVecs];
    TESSERA_UNROLL
    for (int v = 0; v < kVecs; ++v) columns[v] = load(w + v * kLanes);
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Vec value = splat(x[t][k]);
      TESSERA_UNROLL
      for (int v = 0; v < kVecs; ++v) acc[t][v] = fmadd(value, columns[v], acc[t][v]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int v = 0; v < kVecs; ++v) store_first(y[t] + v * kLanes, acc[t][v], n_lanes[v]);
  }
}

using TokenTileFunction = void (*)(const Panel&, const float* const*, const Target&,
                                   int64_t) noexcept;

/// `Source` reads the operands:
///   Panel panel(k_begin, n, col_begin, n_cols, buffer)    w as f32, columns behind the last one
///                                                         readable (whatever they hold)
///   const float* activations(i_token, k_begin, n, buffer)
///   void finish(i_token, col_begin, n_cols)               when sums are complete
template <typename Source>
void multiply(const Source& source, const MatrixView& y, int64_t n_tokens, int64_t n_values,
              Team& team) {
  static constexpr TokenTileFunction kTiles[] = {
      nullptr,           multiply_panel<1>, multiply_panel<2>, multiply_panel<3>,
      multiply_panel<4>, multiply_panel<5>, multiply_panel<6>,
  };
  alignas(64) float panel_buffer[kSlab * kPanelCols];
  alignas(64) float x_buffer[kTokenTile * kSlab];
  const int64_t n_across = chunks_of(y.n_cols, kPanelCols);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t col_begin = chunk % n_across * kPanelCols;
    const int64_t n_cols = min_of(kPanelCols, y.n_cols - col_begin);
    const int64_t token_begin = chunk / n_across * kChunkTokens;
    const int64_t token_end = min_of(token_begin + kChunkTokens, n_tokens);
    for (int64_t k = 0; k == 0 || k < n_values; k += kSlab) {
      const int64_t n = min_of(kSlab, n_values - k);
      const Panel panel = source.panel(k, n, col_begin, n_cols, panel_buffer);
      for (int64_t t = token_begin; t < token_end; t += kTokenTile) {
        const int64_t n_tile = min_of(kTokenTile, token_end - t);
        const float* x[kTokenTile];
        for (int64_t i = 0; i < n_tile; ++i) {
          x[i] = source.activations(t + i, k, n, x_buffer + i * kSlab);
        }
        kTiles[n_tile](panel, x, {y, col_begin, n_cols, k == 0}, t);
      }
    }
    for (int64_t t = token_begin; t < token_end; ++t) source.finish(t, col_begin, n_cols);
  }
}

}  // namespace columns
}  // namespace
}  // namespace tessera::TESSERA_ISA
