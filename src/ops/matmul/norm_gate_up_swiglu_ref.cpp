#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/matmul/compose.hpp"
#include "ops/matmul/linear_ref.hpp"
#include "ops/matmul/norm_gate_up_swiglu.hpp"
#include "ops/norm/norm_ref.hpp"

namespace tessera {

void NormGateUpSwiglu::validate(const Args& args) {
  ops::expect("norm_gate_up_swiglu.x", args.x, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.x.dim(0), n_in = args.x.dim(1);
  ref::check_fused_norm("norm_gate_up_swiglu", args.norm, n_in, args.norm_weight, args.norm_bias,
                        args.eps);
  const int64_t n_out =
      ref::check_weight("norm_gate_up_swiglu.gate", args.gate, n_in, WeightOrder::kOutIn);
  const int64_t n_up =
      ref::check_weight("norm_gate_up_swiglu.up", args.up, n_in, WeightOrder::kOutIn);
  ops::require(n_up == n_out, "norm_gate_up_swiglu.up",
               "expected as many rows as gate has, {}, got {}; both are [d_ff, d_model]", n_out,
               n_up);
  ops::expect("norm_gate_up_swiglu.y", args.y, {DType::kF32}, {n_rows, n_out});
  ops::expect_optional("norm_gate_up_swiglu.live", args.live, {DType::kU32}, {1});
}

Cost NormGateUpSwiglu::cost(const Args& args) {
  Cost total = ref::norm_cost(args.norm, args.x, args.norm_weight, args.norm_bias);
  if (takes_q8(args.gate, args.activations) || takes_q8(args.up, args.activations)) {
    total.flops += 3 * static_cast<double>(args.x.shape.count());
  }
  const int64_t n_rows = args.x.dim(0);
  total.flops += ref::linear_flops(n_rows, args.gate) + ref::linear_flops(n_rows, args.up) +
                 5 * static_cast<double>(args.y.shape.count());
  total.bytes += ops::bytes_of(args.gate) + ops::bytes_of(args.up) + ops::bytes_of(args.y);
  return total;
}

void NormGateUpSwiglu::reference(const Args& args) {
  const int64_t n_rows = ref::live_rows(args.live, args.x.dim(0));
  const ref::Matrix x =
      ref::norm_rows(args.norm, args.x, args.norm_weight, args.norm_bias, args.eps, n_rows);
  ref::Matrix y = ref::linear(ref::seen_by(args.gate, args.activations, x), {.w = args.gate});
  const ref::Matrix up = ref::linear(ref::seen_by(args.up, args.activations, x), {.w = args.up});
  for (size_t m = 0; m < y.size(); ++m) {
    for (size_t n = 0; n < y[m].size(); ++n) y[m][n] = ref::silu_of(y[m][n]) * up[m][n];
  }
  ref::write_rows(args.y, y);
}

}  // namespace tessera
