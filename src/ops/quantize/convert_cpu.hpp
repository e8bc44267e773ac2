#pragma once

#include "ops/cpu_views.hpp"
#include "ops/quantize/storage.hpp"

namespace tessera {

struct ConvertArgs {
  MatrixView y, x;
  Storage to, from;
  int64_t block_size, block_bytes;  // of x
};

TESSERA_DECLARE_TIERS(void convert_rows(const ConvertArgs&, Team&) noexcept)

}  // namespace tessera
