// The steps from the triple loop to a tiled product, for one tier.

#include "bench/ladder_kernels.hpp"
#include "cpu/simd.hpp"

namespace tessera::TESSERA_ISA {
namespace {

inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void clear(const LadderProblem& p) {
  memset(p.c, 0, static_cast<size_t>(p.size * p.size) * sizeof(float));
}

void naive(const LadderProblem& p) noexcept {
  const int64_t n = p.size;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += p.a[i * n + k] * p.b[k * n + j];
      p.c[i * n + j] = sum;
    }
  }
}

/// A vector of neighbouring columns at once.
void vectorised(const LadderProblem& p) noexcept {
  const int64_t n = p.size;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) {
      Vec sum = splat(0);
      for (int64_t k = 0; k < n; ++k) {
        sum = fmadd(splat(p.a[i * n + k]), load(p.b + k * n + j), sum);
      }
      store(p.c + i * n + j, sum);
    }
  }
}

/// The same in blocks of B that stay in a cache while all rows of A pass by.
void blocked(const LadderProblem& p) noexcept {
  const int64_t n = p.size;
  clear(p);
  for (int64_t k0 = 0; k0 < n; k0 += kLadderDepth) {
    const int64_t k1 = smaller(k0 + kLadderDepth, n);
    for (int64_t j0 = 0; j0 < n; j0 += kLadderColumns) {
      const int64_t j1 = smaller(j0 + kLadderColumns, n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = j0; j < j1; j += kLanes) {
          Vec sum = load(p.c + i * n + j);
          for (int64_t k = k0; k < k1; ++k) {
            sum = fmadd(splat(p.a[i * n + k]), load(p.b + k * n + j), sum);
          }
          store(p.c + i * n + j, sum);
        }
      }
    }
  }
}

/// The same with the block copied, so that the inner loop reads one address after the other.
void packed(const LadderProblem& p, float* packed_b) noexcept {
  const int64_t n = p.size;
  clear(p);
  for (int64_t k0 = 0; k0 < n; k0 += kLadderDepth) {
    const int64_t depth = smaller(kLadderDepth, n - k0);
    for (int64_t j0 = 0; j0 < n; j0 += kLadderColumns) {
      const int64_t columns = smaller(kLadderColumns, n - j0);
      for (int64_t j = 0; j < columns; j += kLanes) {
        for (int64_t k = 0; k < depth; ++k) {
          store(packed_b + (j * depth + k * kLanes), load(p.b + (k0 + k) * n + j0 + j));
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < columns; j += kLanes) {
          Vec sum = load(p.c + i * n + j0 + j);
          const float* panel = packed_b + j * depth;
          for (int64_t k = 0; k < depth; ++k) {
            sum = fmadd(splat(p.a[i * n + k0 + k]), load(panel + k * kLanes), sum);
          }
          store(p.c + i * n + j0 + j, sum);
        }
      }
    }
  }
}

// Tiles of kTileRows x 2 vectors: 16 sums, 2 vectors of B and a factor in 32 registers, or 8 sums
// in
// 16. Both cover a latency of 4 cycles on two units.
constexpr int kTileRows = kRegisters / 4;
constexpr int64_t kPanel = 2 * kLanes;

void pack_panel(const LadderProblem& p, int64_t k0, int64_t j0, int64_t i_panel,
                float* packed_b) noexcept {
  const int64_t n = p.size, depth = smaller(kLadderDepth, n - k0);
  const float* source = p.b + k0 * n + j0 + i_panel * kPanel;
  float* target = packed_b + i_panel * kPanel * depth;
  for (int64_t k = 0; k < depth; ++k) {
    store(target + k * kPanel, load(source + k * n));
    store(target + k * kPanel + kLanes, load(source + k * n + kLanes));
  }
}

/// c[kTileRows, kPanel] += a[depth, kTileRows]^T b[depth, kPanel].
inline void multiply_tile(const float* a, const float* b, int64_t depth, float* c, int64_t stride) {
  Vec left[kTileRows], right[kTileRows];
  for (int i = 0; i < kTileRows; ++i) {
    left[i] = load(c + i * stride);
    right[i] = load(c + i * stride + kLanes);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const Vec b0 = load(b + k * kPanel), b1 = load(b + k * kPanel + kLanes);
    for (int i = 0; i < kTileRows; ++i) {
      const Vec factor = splat(a[k * kTileRows + i]);
      left[i] = fmadd(factor, b0, left[i]);
      right[i] = fmadd(factor, b1, right[i]);
    }
  }
  for (int i = 0; i < kTileRows; ++i) {
    store(c + i * stride, left[i]);
    store(c + i * stride + kLanes, right[i]);
  }
}

void multiply_rows(const LadderProblem& p, int64_t k0, int64_t j0, int64_t i0,
                   const float* packed_b, float* packed_a) noexcept {
  const int64_t n = p.size, depth = smaller(kLadderDepth, n - k0);
  const int64_t columns = smaller(kLadderColumns, n - j0);
  for (int64_t i = 0; i < kLadderRows; ++i) {
    float* tile = packed_a + i / kTileRows * kTileRows * depth + i % kTileRows;
    for (int64_t k = 0; k < depth; ++k) tile[k * kTileRows] = p.a[(i0 + i) * n + k0 + k];
  }
  for (int64_t j = 0; j < columns; j += kPanel) {
    for (int64_t i = 0; i < kLadderRows; i += kTileRows) {
      multiply_tile(packed_a + i * depth, packed_b + j * depth, depth, p.c + (i0 + i) * n + j0 + j,
                    n);
    }
  }
}

}  // namespace

const LadderKernels kLadderKernels = {.naive = naive,
                                      .vectorised = vectorised,
                                      .blocked = blocked,
                                      .packed = packed,
                                      .pack_panel = pack_panel,
                                      .multiply_rows = multiply_rows,
                                      .panel_columns = kPanel};

}  // namespace tessera::TESSERA_ISA
