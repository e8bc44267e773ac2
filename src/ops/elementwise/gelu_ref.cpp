#include <cmath>
#include <numbers>

#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/elementwise/gelu.hpp"

namespace tessera {

void Gelu::validate(const Args& args) {
  ops::expect("gelu.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("gelu.y", args.y, {DType::kF32}, {args.x.dim(0), args.x.dim(1)});
  ops::expect_optional("gelu.live", args.live, {DType::kU32}, {1});
}

Cost Gelu::cost(const Args& args) {
  return {.flops = 10 * static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.y)};
}

void Gelu::reference(const Args& args) {
  const auto exact = [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); };
  const auto with_tanh = [](double x) {
    const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(inner));
  };
  if (args.kind == GeluKind::kErf) {
    ref::map_rows(args.y, args.x, args.live, exact);
  } else {
    ref::map_rows(args.y, args.x, args.live, with_tanh);
  }
}

}  // namespace tessera
