#include "ops/matmul/norm_linear_group.hpp"

#include "ops/matmul/compose.hpp"
#include "ops/matmul/linear_ref.hpp"
#include "ops/norm/norm_ref.hpp"

namespace tessera {

ref::Matrix ref::norm_rows(NormKind norm, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           double eps, int64_t n_rows) {
  const Values w = read_vector(weight);
  const Values b = bias.defined() ? read_vector(bias) : Values{};
  Matrix rows = read_rows(x, n_rows);
  for (Values& row : rows) {
    row = norm == NormKind::kRms ? rmsnorm_row(row, w, eps) : layernorm_row(row, w, b, eps);
  }
  return rows;
}

void ref::check_fused_norm(std::string_view op, NormKind norm, int64_t k, const Tensor& weight,
                           const Tensor& bias, float eps) {
  check_norm(op, "norm_", k, weight, bias, eps);
  ops::require(norm == NormKind::kLayer || !bias.defined(), fmt::format("{}.norm_bias", op),
               "expected none with NormKind::kRms, got shape {}; leave it out or ask for "
               "NormKind::kLayer",
               bias.shape.to_string());
}

void NormLinearGroup::validate(const Args& args) {
  static constexpr std::array<std::array<const char*, 3>, kMaxWeights> kNames = {
      {{"norm_linear_group.w0", "norm_linear_group.y0", "norm_linear_group.bias0"},
       {"norm_linear_group.w1", "norm_linear_group.y1", "norm_linear_group.bias1"},
       {"norm_linear_group.w2", "norm_linear_group.y2", "norm_linear_group.bias2"}}};
  ops::expect("norm_linear_group.x", args.x, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.x.dim(0), n_in = args.x.dim(1);
  ref::check_fused_norm("norm_linear_group", args.norm, n_in, args.norm_weight, args.norm_bias,
                        args.eps);
  for (size_t i = 0; i < kMaxWeights; ++i) {
    const auto [w, y, bias] = kNames[i];
    if (i > 0 && !args.w[i].defined()) {
      ops::require(!args.y[i].defined() && !args.bias[i].defined(), w,
                   "expected a weight for the output or bias of this entry, got none; leave "
                   "entries out from the back, all three tensors of each");
      continue;
    }
    ops::require(i == 0 || args.w[i - 1].defined(), w,
                 "expected none, since the entry before it has none; leave entries out from the "
                 "back");
    const int64_t n_out = ref::check_weight(w, args.w[i], n_in, WeightOrder::kOutIn);
    ops::expect(y, args.y[i], {DType::kF32}, {n_rows, n_out});
    ops::expect_optional(bias, args.bias[i], {DType::kF32}, {n_out});
  }
  ops::expect_optional("norm_linear_group.live", args.live, {DType::kU32}, {1});
}

Cost NormLinearGroup::cost(const Args& args) {
  Cost total = ref::norm_cost(args.norm, args.x, args.norm_weight, args.norm_bias);
  bool any_q8 = false;
  for (size_t i = 0; i < kMaxWeights && args.w[i].defined(); ++i) {
    total.flops += ref::linear_flops(args.x.dim(0), args.w[i]);
    total.bytes +=
        ops::bytes_of(args.w[i]) + ops::bytes_of(args.bias[i]) + ops::bytes_of(args.y[i]);
    any_q8 = any_q8 || takes_q8(args.w[i], args.activations);
  }
  if (any_q8) total.flops += 3 * static_cast<double>(args.x.shape.count());
  return total;
}

void NormLinearGroup::reference(const Args& args) {
  const int64_t n_rows = ref::live_rows(args.live, args.x.dim(0));
  const ref::Matrix x =
      ref::norm_rows(args.norm, args.x, args.norm_weight, args.norm_bias, args.eps, n_rows);
  for (size_t i = 0; i < kMaxWeights && args.w[i].defined(); ++i) {
    ref::write_rows(args.y[i], ref::linear(ref::seen_by(args.w[i], args.activations, x),
                                           {.w = args.w[i], .bias = args.bias[i]}));
  }
}

}  // namespace tessera
