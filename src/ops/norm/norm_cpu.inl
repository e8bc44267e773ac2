// What the norms share: a row at a time, and sums over four vectors of partial sums.

#include "cpu/simd.hpp"
#include "ops/norm/norm_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

inline Vec plus_value(Vec sum, Vec x) {
  return sum + x;
}
inline Vec plus_square(Vec sum, Vec x) {
  return fmadd(x, x, sum);
}

/// Adds up x[0] .. x[n - 1] with one of the above. Four accumulators, for an addition takes four
/// cycles and two can start in each.
template <Vec (*Plus)(Vec, Vec)>
inline float sum_of(const float* x, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) sums[j] = Plus(sums[j], load(x + i + j * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) sums[0] = Plus(sums[0], load(x + i));
  if (i < n) sums[1] = Plus(sums[1], load_first(x + i, n - i));
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

inline float inverse_root(float value) {
  return 1.0f / __builtin_sqrtf(value);
}

/// Runs f(i_row) over chunks of about 2048 values.
template <typename F>
inline void for_each_live_row(const NormArgs& args, Team& team, F f) {
  const int64_t n_rows = live_rows(args.live, args.x.n_rows);
  const int64_t chunk_rows = max_of(1, 2048 / max_of(1, args.x.n_cols));
  const int64_t n_chunks = chunks_of(n_rows, chunk_rows);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t end = min_of((chunk + 1) * chunk_rows, n_rows);
    for (int64_t i = chunk * chunk_rows; i < end; ++i) f(i);
  }
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
