#pragma once

#include "ops/norm/norm.hpp"
#include "ops/op.hpp"

namespace tessera {

/// y[i] = norm(x) w[i]^T (+ bias[i]) for one to three weights that share their input: normalised,
/// and for q8 activations quantised, once. The input of attention (q, k, v) and of the head.
///
/// Shapes: x [M, K], norm_weight [K], norm_bias [K] (layernorm only), w[i] [N_i, K], bias[i] [N_i],
/// y[i] [M, N_i]. Types: w any weight type, the rest f32. Unused entries are left out from the
/// back. Aliasing: none. live as in Matmul. Cost: of the parts, the normalised matrix not counted.
struct NormLinearGroup {
  static constexpr std::string_view kName = "norm_linear_group";
  static constexpr int kMaxWeights = 3;
  using Tensors = std::array<Tensor, kMaxWeights>;
  struct Args {
    Tensors y;
    Tensor x, norm_weight;
    Tensor norm_bias = {};
    Tensors w;
    Tensors bias = {};
    Tensor live = {};
    NormKind norm = NormKind::kRms;
    float eps = 1e-5f;
    Activations activations = Activations::kExact;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    static constexpr std::array<std::array<std::string_view, kMaxWeights>, 3> kNames = {
        {{"y0", "y1", "y2"}, {"w0", "w1", "w2"}, {"bias0", "bias1", "bias2"}}};
    for (size_t i = 0; i < kMaxWeights; ++i) v(kNames[0][i], args.y[i], Access::kWrite);
    v("x", args.x, Access::kRead);
    v("norm_weight", args.norm_weight, Access::kRead);
    v("norm_bias", args.norm_bias, Access::kRead);
    for (size_t i = 0; i < kMaxWeights; ++i) v(kNames[1][i], args.w[i], Access::kRead);
    for (size_t i = 0; i < kMaxWeights; ++i) v(kNames[2][i], args.bias[i], Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void norm_linear_group(Queue& queue, const NormLinearGroup::Args& args) {
  launch<NormLinearGroup>(queue, args);
}

}  // namespace tessera
