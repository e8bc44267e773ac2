#pragma once

#include "ops/norm/norm.hpp"
#include "ops/op.hpp"
#include "ops/reference.hpp"

namespace tessera::ref {

/// One row, normalised: Rmsnorm (rmsnorm_ref.cpp) and Layernorm (layernorm_ref.cpp; `bias` may be
/// empty).
Values rmsnorm_row(const Values& x, const Values& weight, double eps);
Values layernorm_row(const Values& x, const Values& weight, const Values& bias, double eps);

/// Checks a norm's parameters for rows of `d` values: weight and bias [d], eps >= 0. The names in
/// messages are `op`.`prefix`weight and so on.
inline void check_norm(std::string_view op, std::string_view prefix, int64_t d,
                       const Tensor& weight, const Tensor& bias, float eps) {
  ops::require(d >= 1, fmt::format("{}.x", op),
               "expected rows of at least one value, got none; a norm of nothing is undefined");
  ops::expect(fmt::format("{}.{}weight", op, prefix), weight, {DType::kF32}, {d});
  ops::expect_optional(fmt::format("{}.{}bias", op, prefix), bias, {DType::kF32}, {d});
  ops::require(eps >= 0, fmt::format("{}.eps", op),
               "expected a value >= 0, got {}; take the model's norm_eps, usually 1e-5 or 1e-6",
               eps);
}

/// FLOPs and bytes read of a norm whose result stays out of memory.
inline Cost norm_cost(NormKind norm, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const double flops_per_value = norm == NormKind::kRms ? 4 : 7;
  return {.flops = flops_per_value * static_cast<double>(x.shape.count()),
          .bytes = ops::bytes_of(x) + ops::bytes_of(weight) + ops::bytes_of(bias)};
}

}  // namespace tessera::ref
