#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

struct SoftmaxArgs {
  MatrixView y, x;
};

TESSERA_DECLARE_TIERS(void softmax_rows(const SoftmaxArgs&, Team&) noexcept)

}  // namespace tessera
