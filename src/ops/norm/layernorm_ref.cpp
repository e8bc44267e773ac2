#include "ops/norm/layernorm.hpp"

#include <cmath>

#include "ops/norm/norm_ref.hpp"

namespace tessera {

ref::Values ref::layernorm_row(const Values& x, const Values& weight, const Values& bias,
                               double eps) {
  const auto n = static_cast<double>(x.size());
  double sum = 0;
  for (const double value : x) sum += value;
  const double mean = sum / n;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double root = std::sqrt(squares / n + eps);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean) / root * weight[i] + (bias.empty() ? 0.0 : bias[i]);
  }
  return y;
}

void Layernorm::validate(const Args& args) {
  ops::expect("layernorm.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("layernorm.y", args.y, {DType::kF32}, {args.x.dim(0), args.x.dim(1)});
  ref::check_norm("layernorm", "", args.x.dim(1), args.weight, args.bias, args.eps);
  ops::expect_optional("layernorm.live", args.live, {DType::kU32}, {1});
}

Cost Layernorm::cost(const Args& args) {
  Cost cost = ref::norm_cost(NormKind::kLayer, args.x, args.weight, args.bias);
  cost.bytes += ops::bytes_of(args.y);
  return cost;
}

void Layernorm::reference(const Args& args) {
  const ref::Values weight = ref::read_vector(args.weight);
  const ref::Values bias = args.bias.defined() ? ref::read_vector(args.bias) : ref::Values{};
  for (int64_t row = 0; row < ref::live_rows(args.live, args.x.dim(0)); ++row) {
    ref::write_row(args.y, row,
                   ref::layernorm_row(ref::read_row(args.x, row), weight, bias, args.eps));
  }
}

}  // namespace tessera
