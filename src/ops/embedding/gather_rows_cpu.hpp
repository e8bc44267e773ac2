#pragma once

#include "ops/cpu_views.hpp"
#include "ops/quantize/storage.hpp"

namespace tessera {

struct GatherRowsArgs {
  MatrixView y, table;
  Storage storage;  // of the table
  const uint32_t *ids, *live;
};

TESSERA_DECLARE_TIERS(void gather_rows(const GatherRowsArgs&, Team&) noexcept)

}  // namespace tessera
