#pragma once

// Included by kernels compiled for one instruction set: plain data only.

#include <stdint.h>

namespace tessera {

/// What the products of many tokens pack at a time: values of K, tokens and columns of y. Slabs end
/// where blocks of every format do; long ones read and write y less often (f32, 1024 cubed, one
/// core of an EPYC, of the peak: 0.87 with 256, 0.91 with 512). A packed slab of w is 4 MiB and one
/// of x 2.7 MiB at most: part of an L3.
constexpr int64_t kPackedSlab = 512, kBlockTokens = 84 * 16, kBlockCols = 2048;
/// Packed rows of x are a constant distance apart, so that one register addresses all of a tile's;
/// the 16 values more spread them over the sets of a cache.
constexpr int64_t kXStride = kPackedSlab + 16;

/// Bytes of scratch for y [M, N]. Panels of every tier have at most 32 columns.
static inline int64_t packed_scratch_bytes(int64_t n_tokens, int64_t n_cols) {
  const int64_t tokens = n_tokens < kBlockTokens ? n_tokens : kBlockTokens;
  const int64_t columns = n_cols < kBlockCols ? (n_cols + 31) / 32 * 32 : kBlockCols;
  return (tokens * kXStride + columns * kPackedSlab) * static_cast<int64_t>(sizeof(float));
}

}  // namespace tessera
