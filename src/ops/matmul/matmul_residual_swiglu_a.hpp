#pragma once

#include "ops/matmul/matmul.hpp"
#include "ops/op.hpp"

namespace tessera {

/// y = (silu(g) * u) W + residual: the second half of a gated MLP with the gate folded in.
///
/// Shapes: g and u [M, K], w [K, N] (kInOut, the default: the seeds' form) or [N, K], residual
/// [M, N] optional, y [M, N]. Types: w any weight type for kOutIn, plain for kInOut; the rest f32.
/// Aliasing: none. live as in Matmul. Source: seed 002.
struct MatmulResidualSwigluA {
  static constexpr std::string_view kName = "matmul_residual_swiglu_a";
  struct Args {
    Tensor y, g, u, w;
    Tensor residual = {}, live = {};
    WeightOrder order = WeightOrder::kInOut;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("g", args.g, Access::kRead);
    v("u", args.u, Access::kRead);
    v("w", args.w, Access::kRead);
    v("residual", args.residual, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void matmul_residual_swiglu_a(Queue& queue, const MatmulResidualSwigluA::Args& args) {
  launch<MatmulResidualSwigluA>(queue, args);
}

}  // namespace tessera
