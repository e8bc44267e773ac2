#include "ops/norm/norm_cases.hpp"
#include "ops/norm/rmsnorm.hpp"

namespace tessera {

// The sum of D squares is off by about sqrt(D) roundoffs of itself (rounding errors behave like
// random ones: Higham and Mary 2019), its root by half of that; then a quotient and two products.
template <>
std::vector<Case<Rmsnorm>> cases<Rmsnorm>() {
  return norm_cases<Rmsnorm>([](float) -> Bound {
    return [](const CaseInputs& in, std::string_view, std::span<const double> reference) {
      const double units = 6 + std::sqrt(static_cast<double>(in["x"].columns()));
      return bound::relative(units)(in, "y", reference);
    };
  });
}

}  // namespace tessera
