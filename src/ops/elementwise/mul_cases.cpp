#include "ops/elementwise/elementwise_cases.hpp"
#include "ops/elementwise/mul.hpp"

namespace tessera {

// One operation of f32: rounding its exact result once is all that can happen.
template <>
std::vector<Case<Mul>> cases<Mul>() {
  return elementwise_cases<Mul>(
      bound::exact(), [](auto& args, const Tensor& tensor) { args.y = args.a = args.b = tensor; });
}

}  // namespace tessera
