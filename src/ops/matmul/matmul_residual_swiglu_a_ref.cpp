#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/matmul/linear_ref.hpp"
#include "ops/matmul/matmul_residual_swiglu_a.hpp"

namespace tessera {

void MatmulResidualSwigluA::validate(const Args& args) {
  ops::expect("matmul_residual_swiglu_a.g", args.g, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.g.dim(0), n_in = args.g.dim(1);
  ops::expect("matmul_residual_swiglu_a.u", args.u, {DType::kF32}, {n_rows, n_in});
  const int64_t n_out = ref::check_weight("matmul_residual_swiglu_a.w", args.w, n_in, args.order);
  ops::expect("matmul_residual_swiglu_a.y", args.y, {DType::kF32}, {n_rows, n_out});
  ops::expect_optional("matmul_residual_swiglu_a.residual", args.residual, {DType::kF32},
                       {n_rows, n_out});
  ops::expect_optional("matmul_residual_swiglu_a.live", args.live, {DType::kU32}, {1});
}

Cost MatmulResidualSwigluA::cost(const Args& args) {
  const double swiglu_flops = 5 * static_cast<double>(args.g.shape.count());
  return {.flops = swiglu_flops + ref::linear_flops(args.g.dim(0), args.w),
          .bytes = ops::bytes_of(args.g) + ops::bytes_of(args.u) + ops::bytes_of(args.w) +
                   ops::bytes_of(args.residual) + ops::bytes_of(args.y)};
}

void MatmulResidualSwigluA::reference(const Args& args) {
  const int64_t n_rows = ref::live_rows(args.live, args.g.dim(0));
  const ref::Matrix up = ref::read_rows(args.u, n_rows);
  ref::Matrix hidden = ref::read_rows(args.g, n_rows);
  for (size_t m = 0; m < hidden.size(); ++m) {
    for (size_t k = 0; k < hidden[m].size(); ++k) {
      hidden[m][k] = ref::silu_of(hidden[m][k]) * up[m][k];
    }
  }
  ref::write_rows(
      args.y, ref::linear(hidden, {.w = args.w, .residual = args.residual, .order = args.order}));
}

}  // namespace tessera
