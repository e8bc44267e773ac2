#pragma once

#include <array>
#include <string_view>

#include "device/kernel_table.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {

/// What few_rows.wgsl computes, for one to kMaxFewRows rows of x: y[i] = x w[i]^T (+ bias[i])
/// (+ residual), or with `gate` y[0] = silu(x w[0]^T) * (x w[1]^T); with a norm_weight, rmsnorm(x)
/// takes the place of x. The two of a gate have one type.
struct FewRows {
  static constexpr int kMaxWeights = 3;
  std::array<Tensor, kMaxWeights> y, w;
  std::array<Tensor, kMaxWeights> bias = {};
  Tensor x, norm_weight = {}, residual = {}, live = {};
  float eps = 0;
  bool gate = false;

  int n_weights() const;
  int n_outputs() const { return gate ? 1 : n_weights(); }
};

inline constexpr int64_t kMaxFewRows = 8;

bool supports_few_rows(const FewRows& rows, const webgpu::Capabilities& capabilities);
void record_few_rows(Queue& queue, std::string_view label, const FewRows& rows, bool subgroups);

/// The rows of an op that few_rows.wgsl can run: with subgroups where there are any, and without.
/// `describe` gives what to compute, or nothing to do (no weights) where arguments ask for more.
template <typename Op>
void add_few_rows(KernelTable& table, const webgpu::Capabilities& capabilities,
                  FewRows (*describe)(const typename Op::Args&)) {
  for (const bool subgroups : {true, false}) {
    if (subgroups && !capabilities.subgroups) continue;
    table.add<Op>({
        .name = subgroups ? "teams_of_subgroups" : "teams",
        .supports = [=](const typename Op::Args& args,
                        const Caps&) { return supports_few_rows(describe(args), capabilities); },
        .run = [=](Queue& queue, const typename Op::Args& args,
                   const Tensor&) { record_few_rows(queue, Op::kName, describe(args), subgroups); },
        .traits = {.isa = subgroups ? "subgroups" : "core",
                   .reduction_order = subgroups ? "webgpu.subgroup_teams" : "webgpu.teams"},
    });
  }
}

}  // namespace tessera
