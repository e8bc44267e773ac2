#pragma once

#include "ops/norm/norm.hpp"
#include "ops/op.hpp"

namespace tessera {

/// y = silu(n gate^T) * (n up^T) with n = norm(x): the first half of a gated MLP.
///
/// Shapes: x [M, K], norm_weight and norm_bias [K], gate and up [N, K], y [M, N]. Types: gate and
/// up any weight type, the rest f32. Aliasing: none. live as in Matmul. Source: Shazeer 2020, "GLU
/// Variants Improve Transformer".
struct NormGateUpSwiglu {
  static constexpr std::string_view kName = "norm_gate_up_swiglu";
  struct Args {
    Tensor y, x, norm_weight, gate, up;
    Tensor norm_bias = {}, live = {};
    NormKind norm = NormKind::kRms;
    float eps = 1e-5f;
    Activations activations = Activations::kExact;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("norm_weight", args.norm_weight, Access::kRead);
    v("gate", args.gate, Access::kRead);
    v("up", args.up, Access::kRead);
    v("norm_bias", args.norm_bias, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void norm_gate_up_swiglu(Queue& queue, const NormGateUpSwiglu::Args& args) {
  launch<NormGateUpSwiglu>(queue, args);
}

}  // namespace tessera
