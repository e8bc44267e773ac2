#include "ops/elementwise/elementwise_cpu.inl"

namespace tessera::TESSERA_ISA {
namespace {
inline Vec gated(Vec gate, Vec up) {
  return silu(gate) * up;
}
}  // namespace

void swiglu_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<gated>(args, team);
}

}  // namespace tessera::TESSERA_ISA
