#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

struct NormArgs {
  MatrixView y, x;
  const float *weight, *bias;  // bias: layernorm only, may be null
  const uint32_t* live;
  float eps;
};

TESSERA_DECLARE_TIERS(void rmsnorm_rows(const NormArgs&, Team&) noexcept;
                      void layernorm_rows(const NormArgs&, Team&) noexcept)

}  // namespace tessera
