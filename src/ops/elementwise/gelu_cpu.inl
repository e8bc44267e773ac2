#include "ops/elementwise/elementwise_cpu.inl"

namespace tessera::TESSERA_ISA {
namespace {

// 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2 u)), without cancellation for large negative u.
inline Vec gelu_tanh(Vec x) {
  const Vec cubic = fmadd(x * x * x, splat(0.044715f), x);
  return x / (1.0f + exp(splat(-1.595769122f) * cubic));  // 2 sqrt(2 / pi)
}

inline Vec gelu_erf(Vec x) {
  const Vec tail = normal_tail(bits_as<Vec>(bits_as<IVec>(x) & 0x7fffffff));
  return x * select(x > 0.0f, 1.0f - tail, tail);
}

}  // namespace

void gelu_tanh_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<gelu_tanh>(args, team);
}

void gelu_erf_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<gelu_erf>(args, team);
}

}  // namespace tessera::TESSERA_ISA
