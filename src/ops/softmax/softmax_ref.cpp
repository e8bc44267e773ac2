#include "ops/softmax/softmax_ref.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/softmax/softmax.hpp"

namespace tessera {

ref::Values ref::softmax_row(const Values& x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool all_masked = std::all_of(x.begin(), x.end(), [](double v) { return v == -kInfinity; });
  if (all_masked) return Values(x.size(), 0.0);
  double largest = -kInfinity;
  for (const double value : x) largest = std::max(largest, value);
  Values y;
  double sum = 0;
  for (const double value : x) {
    y.push_back(std::exp(value - largest));
    sum += y.back();
  }
  for (double& value : y) value /= sum;
  return y;
}

void Softmax::validate(const Args& args) {
  ops::expect("softmax.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("softmax.y", args.y, {DType::kF32}, {args.x.dim(0), args.x.dim(1)});
}

Cost Softmax::cost(const Args& args) {
  return {.flops = 4 * static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.y)};
}

void Softmax::reference(const Args& args) {
  for (int64_t row = 0; row < args.x.dim(0); ++row) {
    ref::write_row(args.y, row, ref::softmax_row(ref::read_row(args.x, row)));
  }
}

}  // namespace tessera
