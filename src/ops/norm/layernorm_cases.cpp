#include "ops/norm/layernorm.hpp"
#include "ops/norm/norm_cases.hpp"

namespace tessera {
namespace {

// With n = 4 + sqrt(D) roundoffs u for a sum of D values (Higham and Mary 2019): the mean is off by
// n u rms(x), which the quotient by the deviation and the weight magnify; the deviation is off by
// n u of itself; then a quotient, two products and a sum.
Bound layernorm_bound(float eps) {
  return [eps](const CaseInputs& in, std::string_view, std::span<const double> reference) {
    const auto& x = in["x"];
    const auto d = static_cast<size_t>(x.columns());
    const double n = 4 + std::sqrt(static_cast<double>(d));
    std::vector<double> allowed(reference.size());
    for (size_t row = 0; row < reference.size() / d; ++row) {
      const auto values = x.row(static_cast<int64_t>(row));
      double mean = 0, squares = 0, variance = 0;
      for (const double value : values) {
        mean += value / static_cast<double>(d);
        squares += value * value / static_cast<double>(d);
      }
      for (const double value : values) {
        variance += (value - mean) * (value - mean) / static_cast<double>(d);
      }
      const double deviation = std::sqrt(variance + static_cast<double>(eps));
      for (size_t i = 0; i < d; ++i) {
        const double weight = std::abs(in["weight"].values[i]);
        const double bias = in.has("bias") ? std::abs(in["bias"].values[i]) : 0;
        const double result = std::abs(reference[row * d + i]);
        allowed[row * d + i] =
            kUnitF32 * (weight * n * std::sqrt(squares) / deviation + (n + 6) * (result + bias)) +
            kTinyF32;
      }
    }
    return allowed;
  };
}

}  // namespace

template <>
std::vector<Case<Layernorm>> cases<Layernorm>() {
  std::vector<Case<Layernorm>> result = norm_cases<Layernorm>(layernorm_bound);
  const size_t n_without_bias = result.size();
  for (size_t i = 0; i < n_without_bias; ++i) {
    Case<Layernorm> c = result[i];
    c.name = "bias_" + c.name;
    c.args.bias = f32({c.args.x.dim(1)});
    c.bench = false;
    result.push_back(std::move(c));
  }
  return result;
}

}  // namespace tessera
