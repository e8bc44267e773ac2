#pragma once

// Included by kernels compiled for one instruction set: plain data only.

#include <stdint.h>

#include "cpu/tier.hpp"

namespace tessera {

/// C = A B, all square and row-major. `size` is a multiple of 64, so that no step needs a tail and
/// each shows one idea alone.
struct LadderProblem {
  const float *a, *b;
  float* c;
  int64_t size;
};

// Blocks of B are 256x512 (512 KiB: half of a 1 MiB L2), blocks of A 64x256 (64 KiB).
constexpr int64_t kLadderDepth = 256, kLadderColumns = 512, kLadderRows = 64;

/// The steps of one tier.
struct LadderKernels {
  void (*naive)(const LadderProblem&) noexcept;
  void (*vectorised)(const LadderProblem&) noexcept;
  void (*blocked)(const LadderProblem&) noexcept;
  void (*packed)(const LadderProblem&, float* packed_b) noexcept;
  /// Copies panel `i_panel` of the block of B at (k0, j0): panels of `panel_columns`, whose rows
  /// follow each other.
  void (*pack_panel)(const LadderProblem&, int64_t k0, int64_t j0, int64_t i_panel,
                     float* packed_b) noexcept;
  /// C's rows i0 to i0 + 64 += A's part times that block, in tiles held in registers.
  void (*multiply_rows)(const LadderProblem&, int64_t k0, int64_t j0, int64_t i0,
                        const float* packed_b, float* packed_a) noexcept;
  int64_t panel_columns;
};

TESSERA_DECLARE_TIERS(extern const LadderKernels kLadderKernels)

}  // namespace tessera
