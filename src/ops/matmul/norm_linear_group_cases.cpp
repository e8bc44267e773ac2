#include "ops/matmul/norm_linear_group.hpp"

#include <fmt/format.h>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

Bound group_bound(const NormLinearGroup::Args& args) {
  return [=](const CaseInputs& in, std::string_view output, std::span<const double> reference) {
    const std::string index(1, output.back());
    const DType weight = args.w[static_cast<size_t>(output.back() - '0')].dtype;
    const bool q8 = args.activations == Activations::kQ8 && is_block_format(weight);
    std::vector<double> errors = normed_product_errors(normed_rows(in, args.norm, args.eps, q8),
                                                       matrix_of(in["w" + index]), weight);
    add_epilogue_errors(in, "bias" + index, "", reference, errors);
    return errors;
  };
}

struct Cases {
  std::vector<Case<NormLinearGroup>> all;

  Case<NormLinearGroup>& add(std::string_view kind, int64_t m, int64_t k,
                             std::vector<std::pair<DType, int64_t>> weights, NormKind norm,
                             Activations activations) {
    NormLinearGroup::Args args = {.y = {},
                                  .x = f32({m, k}),
                                  .norm_weight = f32({k}),
                                  .w = {},
                                  .norm = norm,
                                  .activations = activations};
    std::string text = fmt::format("{}{}_{}_{}x{}", kind, norm == NormKind::kRms ? "rms" : "layer",
                                   activations == Activations::kQ8 ? "q8" : "exact", m, k);
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto& [dtype, n] = weights[i];
      args.w[i] = Tensor::dense(dtype, {n, k});
      args.y[i] = f32({m, n});
      text += fmt::format("_{}x{}", name(dtype), n);
    }
    if (norm == NormKind::kLayer) args.norm_bias = f32({k});
    all.push_back({.name = text, .args = args, .bound = group_bound(args)});
    return all.back();
  }
};

}  // namespace

template <>
std::vector<Case<NormLinearGroup>> cases<NormLinearGroup>() {
  Cases cases;
  for (const Activations activations : {Activations::kExact, Activations::kQ8}) {
    for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
      for (const DType w : ops::kWeightTypes) {
        const int64_t k = info(w).block_size == 1 ? 65 : 256;
        cases.add("", 1, k, {{w, 33}}, norm, activations);
        cases.add("", 5, k, {{w, 18}, {w, 7}}, norm, activations);
        Case<NormLinearGroup>& c =
            cases.add("all_", 7, k, {{w, 18}, {w, 9}, {w, 1}}, norm, activations);
        for (size_t i = 0; i < 3; ++i) {
          c.args.bias[i] = f32({c.args.w[i].dim(0)});
          c.args.y[i] = with_gap(c.args.y[i], 2);
        }
        c.args.x = with_gap(c.args.x, 3);
        c.args.live = live_tensor();
        c.fills["live"] = fill::constant(5);
      }
      cases.add("mixed_", 4, 256, {{DType::kQ4_K, 20}, {DType::kF32, 8}, {DType::kQ6_K, 8}}, norm,
                activations);
      cases.add("mixed_", 2, 256, {{DType::kQ5_K, 20}, {DType::kQ4_K, 8}, {DType::kQ5_K, 9}}, norm,
                activations);
      cases.add("", 0, 64, {{DType::kQ8_0, 20}}, norm, activations);
      cases.add("", 17, 576, {{DType::kQ8_0, 65}, {DType::kQ8_0, 33}, {DType::kQ8_0, 33}}, norm,
                activations);
      cases.add("offset_", 3, 96, {{DType::kF32, 17}}, norm, activations).fills["x"] =
          fill::normal(1, 50);
    }
    for (const int64_t m : {1, 512}) {
      for (const DType w : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
        for (const bool head : {false, true}) {
          std::vector<std::pair<DType, int64_t>> weights = {{w, 576}, {w, 192}, {w, 192}};
          if (head) weights = {{w, 49152}};
          if (head && m > 1) continue;
          Case<NormLinearGroup>& c =
              cases.add("bench_", m, 576, weights, NormKind::kRms, activations);
          c.quick = c.test = false;
          c.bench = true;
        }
      }
    }
  }
  return std::move(cases.all);
}

}  // namespace tessera
