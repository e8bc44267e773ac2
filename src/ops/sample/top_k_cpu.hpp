#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

struct TopKArgs {
  MatrixView values, ids, x;  // values and ids: [R, k]
  const uint32_t* live;
};

namespace portable {
void top_k_rows(const TopKArgs&, Team&) noexcept;
}

}  // namespace tessera
