#include "ops/elementwise/elementwise_cpu.inl"

namespace tessera::TESSERA_ISA {

void silu_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<silu>(args, team);
}

}  // namespace tessera::TESSERA_ISA
