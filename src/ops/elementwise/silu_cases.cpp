#include "ops/elementwise/elementwise_cases.hpp"
#include "ops/elementwise/silu.hpp"

namespace tessera {

// exp within 4 roundoffs, a sum and a quotient. Below about -88 the exponential overflows f32 and
// the result, smaller than any normal number, may be zero.
template <>
std::vector<Case<Silu>> cases<Silu>() {
  return elementwise_cases<Silu>(
      bound::relative(8), [](auto& args, const Tensor& tensor) { args.y = args.x = tensor; });
}

}  // namespace tessera
