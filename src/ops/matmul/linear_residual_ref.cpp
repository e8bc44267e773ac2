#include "ops/matmul/linear_ref.hpp"
#include "ops/matmul/linear_residual.hpp"

namespace tessera {

void LinearResidual::validate(const Args& args) {
  ops::expect("linear_residual.x", args.x, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.x.dim(0);
  const int64_t n_out =
      ref::check_weight("linear_residual.w", args.w, args.x.dim(1), WeightOrder::kOutIn);
  ops::expect("linear_residual.residual", args.residual, {DType::kF32}, {n_rows, n_out});
  ops::expect("linear_residual.y", args.y, {DType::kF32}, {n_rows, n_out});
  ops::expect_optional("linear_residual.bias", args.bias, {DType::kF32}, {n_out});
  ops::expect_optional("linear_residual.live", args.live, {DType::kU32}, {1});
}

Cost LinearResidual::cost(const Args& args) {
  return {.flops = ref::linear_flops(args.x.dim(0), args.w),
          .bytes = ops::bytes_of(args.w) + ops::bytes_of(args.x) + ops::bytes_of(args.y) +
                   ops::bytes_of(args.bias) + ops::bytes_of(args.residual)};
}

void LinearResidual::reference(const Args& args) {
  const ref::Matrix x = ref::read_rows(args.x, ref::live_rows(args.live, args.x.dim(0)));
  ref::write_rows(args.y, ref::linear(ref::seen_by(args.w, args.activations, x),
                                      {.w = args.w, .bias = args.bias, .residual = args.residual}));
}

}  // namespace tessera
