#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

/// y [M, N] = x [M, K] dequant(w), all f32 but w: nibbles of [K, N], flat, the first one lowest.
struct MatmulInt4CpuArgs {
  MatrixView y, x;
  const unsigned char* w;
  const float *scales, *zeros;
  int64_t group_size;
  const uint32_t* live;
  float* scratch;  ///< packed_scratch_bytes
};

TESSERA_DECLARE_TIERS(void matmul_int4(const MatmulInt4CpuArgs&, Team&) noexcept)

}  // namespace tessera
