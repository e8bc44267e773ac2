#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

struct ArgmaxArgs {
  uint32_t* ids;
  MatrixView x;
  const uint32_t* live;
};

TESSERA_DECLARE_TIERS(void argmax_rows(const ArgmaxArgs&, Team&) noexcept)

}  // namespace tessera
