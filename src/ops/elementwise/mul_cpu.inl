#include "ops/elementwise/elementwise_cpu.inl"

namespace tessera::TESSERA_ISA {
namespace {
inline Vec product(Vec a, Vec b) {
  return a * b;
}
}  // namespace

void mul_rows(const ElementwiseArgs& args, Team& team) noexcept {
  for_each_value<product>(args, team);
}

}  // namespace tessera::TESSERA_ISA
