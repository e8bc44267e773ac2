#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/elementwise/mul.hpp"

namespace tessera {

void Mul::validate(const Args& args) {
  ops::expect("mul.a", args.a, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.a.dim(0), n_columns = args.a.dim(1);
  ops::expect("mul.b", args.b, {DType::kF32}, {n_rows, n_columns});
  ops::expect("mul.y", args.y, {DType::kF32}, {n_rows, n_columns});
  ops::expect_optional("mul.live", args.live, {DType::kU32}, {1});
}

Cost Mul::cost(const Args& args) {
  return {.flops = static_cast<double>(args.y.shape.count()),
          .bytes = ops::bytes_of(args.a) + ops::bytes_of(args.b) + ops::bytes_of(args.y)};
}

void Mul::reference(const Args& args) {
  ref::map_rows(args.y, args.a, args.b, args.live, [](double a, double b) { return a * b; });
}

}  // namespace tessera
