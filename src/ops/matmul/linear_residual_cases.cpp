#include "ops/matmul/linear_residual.hpp"

#include <fmt/format.h>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

// Quantising x is specified to the bit, so what remains is the product of the quantised values,
// whose norm is that of x but for half a step each.
Bound linear_residual_bound(DType weight, bool q8) {
  return [=](const CaseInputs& in, std::string_view, std::span<const double> reference) {
    std::vector<double> errors = product_errors(matrix_of(in["x"]), matrix_of(in["w"]), weight, q8);
    add_epilogue_errors(in, "bias", "residual", reference, errors);
    return errors;
  };
}

}  // namespace

template <>
std::vector<Case<LinearResidual>> cases<LinearResidual>() {
  std::vector<Case<LinearResidual>> result;
  const auto add = [&](std::string_view kind, LinearShape s, DType w,
                       Activations activations) -> Case<LinearResidual>& {
    const std::string_view by = activations == Activations::kQ8 ? "q8" : "exact";
    result.push_back(
        {.name = fmt::format("{}{}_{}_{}x{}x{}", kind, by, name(w), s.m, s.n, s.k),
         .args = {.y = f32({s.m, s.n}),
                  .x = f32({s.m, s.k}),
                  .w = Tensor::dense(w, {s.n, s.k}),
                  .residual = f32({s.m, s.n}),
                  .activations = activations},
         .bound = linear_residual_bound(w, is_block_format(w) && activations == Activations::kQ8)});
    return result.back();
  };
  for (const Activations activations : {Activations::kExact, Activations::kQ8}) {
    for (const DType w : ops::kWeightTypes) {
      const int64_t k = info(w).block_size == 1 ? 65 : 256;
      for (const int64_t m : {0, 1, 5, 17}) add("", {m, k, 33}, w, activations);
      Case<LinearResidual>& c = add("all_", {7, k, 19}, w, activations);
      c.args.bias = f32({19});
      c.args.live = live_tensor();
      c.fills["live"] = fill::constant(5);
      c.args.x = with_gap(c.args.x, 3);
      c.args.y = with_gap(c.args.y, 1);
      c.args.residual = with_gap(c.args.residual, 2);
    }
    for (const int64_t m : {1, 512}) {
      for (const DType w : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
        for (const int64_t k : {576, 1536}) {
          Case<LinearResidual>& c = add("bench_", {m, k, 576}, w, activations);
          c.quick = c.test = false;
          c.bench = true;
        }
      }
    }
  }
  return result;
}

}  // namespace tessera
