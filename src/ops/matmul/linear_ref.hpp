#pragma once

#include "ops/matmul/matmul.hpp"
#include "ops/norm/norm.hpp"
#include "ops/reference.hpp"

// What the references of matmul and of the contracts made of it share (matmul_ref.cpp).

namespace tessera::ref {

/// A linear layer; bias and residual may be left out.
struct Linear {
  Tensor w;
  Tensor bias = {}, residual = {};
  WeightOrder order = WeightOrder::kOutIn;
};

/// x W^T or x W, plus bias, plus the rows of the residual. Every weight row is decoded once.
Matrix linear(const Matrix& x, const Linear& layer);
void write_rows(const Tensor& y, const Matrix& rows);

/// The rows as a product with `w` sees them: through q8 where the weight takes it, exact otherwise.
Matrix seen_by(const Tensor& w, Activations activations, const Matrix& rows);

/// The first `n_rows` rows of x, normalised (norm_linear_group_ref.cpp).
Matrix norm_rows(NormKind norm, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 double eps, int64_t n_rows);

/// Checks a weight for `k` input features and returns its output features.
int64_t check_weight(std::string_view what, const Tensor& w, int64_t k, WeightOrder order);
/// Checks norm, weight and bias of a fused contract for rows of `k` values.
void check_fused_norm(std::string_view op, NormKind norm, int64_t k, const Tensor& weight,
                      const Tensor& bias, float eps);

/// 2 FLOPs a weight and row.
inline double linear_flops(int64_t n_rows, const Tensor& w) {
  return 2 * static_cast<double>(n_rows) * static_cast<double>(w.shape.count());
}

}  // namespace tessera::ref
