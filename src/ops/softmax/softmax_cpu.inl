#include "ops/softmax/softmax_cpu.hpp"

#include "cpu/simd.hpp"

namespace tessera::TESSERA_ISA {
namespace {

float largest(const float* x, int64_t n) {
  Vec best = splat(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = max(load(x + i), best);
  float result = reduce_max(best);
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void softmax(const float* x, float* y, int64_t n) {
  const float maximum = largest(x, n);  // NaN is no maximum, but reaches the sum
  // A row of -infinity: subtract 0, so that every exponential is 0 and not NaN.
  const Vec shift = splat(maximum == -__builtin_inff() ? 0.0f : maximum);
  Vec sums = {};
  float tail_sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec e = exp(load(x + i) - shift);
    store(y + i, e);
    sums += e;
  }
  if (i < n) {
    store_first(y + i, exp(load_first(x + i, n - i) - shift), n - i);
    tail_sum = reduce_add(load_first(y + i, n - i));
  }
  const float sum = reduce_add(sums) + tail_sum;
  const float factor = sum == 0 ? 0 : 1 / sum;
  for (i = 0; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) * factor);
  for (; i < n; ++i) y[i] *= factor;
}

}  // namespace

void softmax_rows(const SoftmaxArgs& args, Team& team) noexcept {
  for (int64_t i; (i = team.next_chunk(args.x.n_rows)) < args.x.n_rows;) {
    softmax(row_of<const float>(args.x, i), row_of<float>(args.y, i), args.x.n_cols);
  }
}

}  // namespace tessera::TESSERA_ISA
