#include "ops/elementwise/add.hpp"
#include "ops/elementwise/elementwise_cases.hpp"

namespace tessera {

// One operation of f32: rounding its exact result once is all that can happen.
template <>
std::vector<Case<Add>> cases<Add>() {
  return elementwise_cases<Add>(
      bound::exact(), [](auto& args, const Tensor& tensor) { args.y = args.a = args.b = tensor; });
}

}  // namespace tessera
