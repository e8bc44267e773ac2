#pragma once

#include "base/checked.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {

/// How many threads share a row of d values, and whether they hold all of it: 16 values each. Known
/// from d alone, so that a row's bits depend on nothing else.
struct RowTeam {
  int64_t threads;
  bool is_long;
};
inline RowTeam row_team(int64_t d) {
  constexpr int64_t kValuesOfThread = 16;
  for (const int64_t threads : {16, 64, 256}) {
    if (d <= kValuesOfThread * threads) return {threads, false};
  }
  return {256, true};
}

/// Workgroups for n_rows rows of d values.
inline webgpu::Grid row_team_grid(int64_t n_rows, int64_t d,
                                  const webgpu::Capabilities& capabilities) {
  return webgpu::fold(ceil_div(n_rows, kWorkgroupThreads / row_team(d).threads), capabilities);
}

}  // namespace tessera
