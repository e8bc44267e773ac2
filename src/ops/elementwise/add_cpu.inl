#include "ops/elementwise/elementwise_cpu.inl"

namespace tessera::TESSERA_ISA {
namespace {
inline Vec sum(Vec a, Vec b) {
  return a + b;
}
}  // namespace

void add_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<sum>(args, team);
}

}  // namespace tessera::TESSERA_ISA
