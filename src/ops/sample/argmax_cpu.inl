#include "cpu/simd.hpp"
#include "ops/sample/argmax_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

/// NaN is never larger and never equal, so it falls out of both passes.
uint32_t argmax(const float* x, int64_t n) {
  const Vec lowest = splat(-__builtin_inff());
  Vec best[4] = {lowest, lowest, lowest, lowest};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) best[j] = max(load(x + i + j * kLanes), best[j]);
  }
  float largest = reduce_max(max(max(best[0], best[1]), max(best[2], best[3])));
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;

  for (i = 0; i + kLanes <= n; i += kLanes) {
    if (any(load(x + i) == splat(largest))) break;
  }
  for (; i < n; ++i) {
    if (x[i] == largest) return static_cast<uint32_t>(i);
  }
  return 0;
}

}  // namespace

void argmax_rows(const ArgmaxArgs& args, Team& team) noexcept {
  const int64_t n_rows = live_rows(args.live, args.x.n_rows);
  for (int64_t i; (i = team.next_chunk(n_rows)) < n_rows;) {
    args.ids[i] = argmax(row_of<const float>(args.x, i), args.x.n_cols);
  }
}

}  // namespace tessera::TESSERA_ISA
