#include "ops/elementwise/elementwise_cases.hpp"
#include "ops/elementwise/swiglu.hpp"

namespace tessera {

// As silu, and a product; a silu that was flushed to zero is missing times `up`.
template <>
std::vector<Case<Swiglu>> cases<Swiglu>() {
  const Bound bound = [](const CaseInputs& in, std::string_view,
                         std::span<const double> reference) {
    std::vector<double> allowed(reference.size());
    for (size_t i = 0; i < allowed.size(); ++i) {
      allowed[i] =
          10 * kUnitF32 * std::abs(reference[i]) + kTinyF32 * (1 + std::abs(in["up"].values[i]));
    }
    return allowed;
  };
  return elementwise_cases<Swiglu>(
      bound, [](auto& args, const Tensor& tensor) { args.y = args.gate = args.up = tensor; });
}

}  // namespace tessera
