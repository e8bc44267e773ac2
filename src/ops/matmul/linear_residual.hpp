#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = x w^T (+ bias) + residual: what closes attention and MLP.
///
/// Shapes: x [M, K], w [N, K], bias [N], residual [M, N], y [M, N]. Types: w any weight type, the
/// rest f32. Aliasing: none (the residual stream alternates between two tensors). live as in
/// Matmul.
struct LinearResidual {
  static constexpr std::string_view kName = "linear_residual";
  struct Args {
    Tensor y, x, w, residual;
    Tensor bias = {}, live = {};
    Activations activations = Activations::kExact;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("w", args.w, Access::kRead);
    v("residual", args.residual, Access::kRead);
    v("bias", args.bias, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void linear_residual(Queue& queue, const LinearResidual::Args& args) {
  launch<LinearResidual>(queue, args);
}

}  // namespace tessera
