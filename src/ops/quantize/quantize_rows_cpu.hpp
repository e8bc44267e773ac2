#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

struct QuantizeRowsArgs {
  MatrixView y, x;
  const uint32_t* live;
};

TESSERA_DECLARE_TIERS(void quantize_rows(const QuantizeRowsArgs&, Team&) noexcept)

}  // namespace tessera
