#include "ops/elementwise/elementwise_cases.hpp"
#include "ops/elementwise/gelu.hpp"

namespace tessera {

// 1 + tanh and 1 + erf cancel for negative x: an error of roundoffs of 1, times x / 2. For positive
// x the result has 8 roundoffs of its own.
template <>
std::vector<Case<Gelu>> cases<Gelu>() {
  const Bound bound = [](const CaseInputs& in, std::string_view,
                         std::span<const double> reference) {
    std::vector<double> allowed(reference.size());
    for (size_t i = 0; i < allowed.size(); ++i) {
      allowed[i] =
          kUnitF32 * (4 * std::abs(in["x"].values[i]) + 8 * std::abs(reference[i])) + kTinyF32;
    }
    return allowed;
  };
  std::vector<Case<Gelu>> result;
  for (const GeluKind kind : {GeluKind::kTanh, GeluKind::kErf}) {
    for (Case<Gelu>&c : elementwise_cases<Gelu>(bound, [&](auto&args, const Tensor&tensor) {
           args.y = args.x = tensor;
           args.kind = kind;
         })) {
      c.name = (kind == GeluKind::kTanh ? "tanh_" : "erf_") + c.name;
      result.push_back(std::move(c));
    }
  }
  return result;
}

}  // namespace tessera
