#include "ops/matmul/norm_gate_up_swiglu.hpp"

#include <fmt/format.h>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

std::vector<double> products(const Matrix& x, const Matrix& w) {
  std::vector<double> result;
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < w.rows; ++j) {
      double sum = 0;
      for (size_t k = 0; k < static_cast<size_t>(x.columns); ++k) sum += x.row(i)[k] * w.row(j)[k];
      result.push_back(sum);
    }
  }
  return result;
}

// The errors of the two products go through silu(g) * u: silu is at most |g| and its slope at most
// 1.1 in size; then 10 roundoffs of swiglu itself.
Bound gate_up_bound(const NormGateUpSwiglu::Args& args) {
  return [=](const CaseInputs& in, std::string_view, std::span<const double> reference) {
    const auto errors_of = [&](std::string_view weight, DType dtype, std::vector<double>& values) {
      const bool q8 = args.activations == Activations::kQ8 && is_block_format(dtype);
      const NormedRows n = normed_rows(in, args.norm, args.eps, q8);
      const Matrix w = matrix_of(in[weight]);
      values = products(n.values, w);
      return normed_product_errors(n, w, dtype);
    };
    std::vector<double> gate, up;
    const std::vector<double> gate_errors = errors_of("gate", args.gate.dtype, gate);
    const std::vector<double> up_errors = errors_of("up", args.up.dtype, up);
    std::vector<double> errors(reference.size());
    for (size_t i = 0; i < errors.size(); ++i) {
      const double silu = std::abs(gate[i] / (1 + std::exp(-gate[i])));
      errors[i] = 1.1 * gate_errors[i] * (std::abs(up[i]) + up_errors[i]) + silu * up_errors[i] +
                  10 * kUnitF32 * std::abs(reference[i]) + kTinyF32 * (1 + std::abs(up[i]));
    }
    return errors;
  };
}

}  // namespace

template <>
std::vector<Case<NormGateUpSwiglu>> cases<NormGateUpSwiglu>() {
  std::vector<Case<NormGateUpSwiglu>> result;
  const auto add = [&](std::string_view kind, LinearShape s, DType gate, DType up, NormKind norm,
                       Activations activations) -> Case<NormGateUpSwiglu>& {
    NormGateUpSwiglu::Args args = {.y = f32({s.m, s.n}),
                                   .x = f32({s.m, s.k}),
                                   .norm_weight = f32({s.k}),
                                   .gate = Tensor::dense(gate, {s.n, s.k}),
                                   .up = Tensor::dense(up, {s.n, s.k}),
                                   .norm = norm,
                                   .activations = activations};
    if (norm == NormKind::kLayer) args.norm_bias = f32({s.k});
    result.push_back(
        {.name = fmt::format(
             "{}{}_{}_{}_{}_{}x{}x{}", kind, norm == NormKind::kRms ? "rms" : "layer",
             activations == Activations::kQ8 ? "q8" : "exact", name(gate), name(up), s.m, s.n, s.k),
         .args = args,
         // Weights of the size of a model's, so that the gates are neither all open nor all shut.
         .fills = {{"gate", fill::normal(0.1)}, {"up", fill::normal(0.1)}},
         .bound = gate_up_bound(args)});
    return result.back();
  };
  for (const Activations activations : {Activations::kExact, Activations::kQ8}) {
    for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
      for (const DType w : ops::kWeightTypes) {
        const int64_t k = info(w).block_size == 1 ? 65 : 256;
        for (const int64_t m : {1, 5}) add("", {m, k, 33}, w, w, norm, activations);
        Case<NormGateUpSwiglu>& c = add("all_", {7, k, 9}, w, w, norm, activations);
        c.args.x = with_gap(c.args.x, 3);
        c.args.y = with_gap(c.args.y, 1);
        c.args.live = live_tensor();
        c.fills["live"] = fill::constant(5);
      }
      add("", {0, 64, 9}, DType::kQ8_0, DType::kQ8_0, norm, activations);
      add("mixed_", {3, 256, 17}, DType::kQ4_K, DType::kQ6_K, norm, activations);
      add("mixed_", {3, 256, 17}, DType::kF16, DType::kQ8_0, norm, activations);
    }
    for (const int64_t m : {1, 512}) {
      for (const DType w : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
        Case<NormGateUpSwiglu>& c =
            add("bench_", {m, 576, 1536}, w, w, NormKind::kRms, activations);
        c.quick = c.test = false;
        c.bench = true;
      }
    }
  }
  return result;
}

}  // namespace tessera
