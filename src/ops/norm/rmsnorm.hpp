#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = x / sqrt(mean(x^2) + eps) * weight, row by row.
///
/// Shapes: x and y [M, D], weight [D]. Types: f32. D >= 1. Accumulates in f32 or wider.
/// Aliasing: none. live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 4 M D FLOPs; x, y and weight once. Source: Zhang and Sennrich 2019.
struct Rmsnorm {
  static constexpr std::string_view kName = "rmsnorm";
  struct Args {
    Tensor y, x, weight;
    Tensor live = {};
    float eps = 1e-5f;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("weight", args.weight, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void rmsnorm(Queue& queue, const Rmsnorm::Args& args) {
  launch<Rmsnorm>(queue, args);
}

}  // namespace tessera
