#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/elementwise/swiglu.hpp"

namespace tessera {

void Swiglu::validate(const Args& args) {
  ops::expect("swiglu.gate", args.gate, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.gate.dim(0), n_columns = args.gate.dim(1);
  ops::expect("swiglu.up", args.up, {DType::kF32}, {n_rows, n_columns});
  ops::expect("swiglu.y", args.y, {DType::kF32}, {n_rows, n_columns});
  ops::expect_optional("swiglu.live", args.live, {DType::kU32}, {1});
}

Cost Swiglu::cost(const Args& args) {
  return {.flops = 5 * static_cast<double>(args.y.shape.count()),
          .bytes = ops::bytes_of(args.gate) + ops::bytes_of(args.up) + ops::bytes_of(args.y)};
}

void Swiglu::reference(const Args& args) {
  ref::map_rows(args.y, args.gate, args.up, args.live,
                [](double gate, double up) { return ref::silu_of(gate) * up; });
}

}  // namespace tessera
