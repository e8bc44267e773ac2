#include "ops/norm/rmsnorm.hpp"

#include <cmath>

#include "ops/norm/norm_ref.hpp"

namespace tessera {

ref::Values ref::rmsnorm_row(const Values& x, const Values& weight, double eps) {
  double sum_of_squares = 0;
  for (const double value : x) sum_of_squares += value * value;
  const double root = std::sqrt(sum_of_squares / static_cast<double>(x.size()) + eps);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / root * weight[i];
  return y;
}

void Rmsnorm::validate(const Args& args) {
  ops::expect("rmsnorm.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("rmsnorm.y", args.y, {DType::kF32}, {args.x.dim(0), args.x.dim(1)});
  ref::check_norm("rmsnorm", "", args.x.dim(1), args.weight, {}, args.eps);
  ops::expect_optional("rmsnorm.live", args.live, {DType::kU32}, {1});
}

Cost Rmsnorm::cost(const Args& args) {
  Cost cost = ref::norm_cost(NormKind::kRms, args.x, args.weight, {});
  cost.bytes += ops::bytes_of(args.y);
  return cost;
}

void Rmsnorm::reference(const Args& args) {
  const ref::Values weight = ref::read_vector(args.weight);
  for (int64_t row = 0; row < ref::live_rows(args.live, args.x.dim(0)); ++row) {
    ref::write_row(args.y, row, ref::rmsnorm_row(ref::read_row(args.x, row), weight, args.eps));
  }
}

}  // namespace tessera
