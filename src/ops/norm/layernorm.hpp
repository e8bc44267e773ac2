#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = (x - mean) / sqrt(var + eps) * weight (+ bias), row by row, with the population variance
/// from the squared differences to the mean.
///
/// Shapes: x and y [M, D], weight [D], bias [D]. Types: f32. D >= 1. Accumulates in f32 or wider.
/// Aliasing: none. live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 7 M D FLOPs; every tensor once. Source: Ba, Kiros and Hinton 2016.
struct Layernorm {
  static constexpr std::string_view kName = "layernorm";
  struct Args {
    Tensor y, x, weight;
    Tensor bias = {}, live = {};
    float eps = 1e-5f;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("weight", args.weight, Access::kRead);
    v("bias", args.bias, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void layernorm(Queue& queue, const Layernorm::Args& args) {
  launch<Layernorm>(queue, args);
}

}  // namespace tessera
