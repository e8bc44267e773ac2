#include "ops/matmul/matmul_residual_swiglu_a.hpp"

#include <fmt/format.h>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

// A product whose input, silu(g) * u, is off by 10 roundoffs.
Bound swiglu_product_bound(const MatmulResidualSwigluA::Args& args) {
  return [order = args.order, weight = args.w.dtype](const CaseInputs& in, std::string_view,
                                                     std::span<const double> reference) {
    Matrix hidden = matrix_of(in["g"]);
    for (size_t i = 0; i < hidden.values.size(); ++i) {
      hidden.values[i] *= in["u"].values[i] / (1 + std::exp(-hidden.values[i]));
    }
    const Matrix w = matrix_of(in["w"]);
    std::vector<double> errors =
        product_errors(hidden, order == WeightOrder::kOutIn ? w : transposed(w), weight, false, 10);
    add_epilogue_errors(in, "", "residual", reference, errors);
    return errors;
  };
}

}  // namespace

template <>
std::vector<Case<MatmulResidualSwigluA>> cases<MatmulResidualSwigluA>() {
  std::vector<Case<MatmulResidualSwigluA>> result;
  const auto add = [&](std::string_view kind, LinearShape s, DType w, WeightOrder order,
                       bool residual) -> Case<MatmulResidualSwigluA>& {
    const bool out_in = order == WeightOrder::kOutIn;
    MatmulResidualSwigluA::Args args = {
        .y = f32({s.m, s.n}),
        .g = f32({s.m, s.k}),
        .u = f32({s.m, s.k}),
        .w = Tensor::dense(w, out_in ? Shape{s.n, s.k} : Shape{s.k, s.n}),
        .order = order};
    if (residual) args.residual = f32({s.m, s.n});
    result.push_back(
        {.name = fmt::format("{}{}{}{}_{}x{}x{}", kind, name(w), out_in ? "" : "_in_out",
                             residual ? "_residual" : "", s.m, s.n, s.k),
         .args = args,
         .bound = swiglu_product_bound(args)});
    return result.back();
  };
  for (const bool residual : {false, true}) {
    for (const DType w : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const LinearShape s : std::initializer_list<LinearShape>{{0, 8, 8},
                                                                    {1, 1, 1},
                                                                    {1, 7, 5},
                                                                    {3, 16, 17},
                                                                    {5, 64, 64},
                                                                    {9, 65, 63},
                                                                    {17, 33, 129}}) {
        add("", s, w, WeightOrder::kInOut, residual);
      }
    }
    for (const DType w : ops::kWeightTypes) {
      add("", {3, info(w).block_size == 1 ? 65 : 256, 33}, w, WeightOrder::kOutIn, residual);
    }
  }
  Case<MatmulResidualSwigluA>& c = add("all_", {7, 33, 20}, DType::kF32, WeightOrder::kInOut, true);
  c.args.g = with_gap(c.args.g, 3);
  c.args.u = with_gap(c.args.u, 2);
  c.args.y = with_gap(c.args.y, 1);
  c.args.live = live_tensor();
  c.fills["live"] = fill::constant(4);
  Case<MatmulResidualSwigluA>& bench =
      add("bench_", {512, 3072, 768}, DType::kF32, WeightOrder::kInOut, true);
  bench.quick = bench.test = false;
  bench.bench = true;
  return result;
}

}  // namespace tessera
