#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = x / (1 + exp(-x)).
///
/// Shapes: x and y [M, N]. Types: f32. Aliasing: none.
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 4 M N FLOPs; x and y once. Source: Elfwing et al. 2017.
struct Silu {
  static constexpr std::string_view kName = "silu";
  struct Args {
    Tensor y, x;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void silu(Queue& queue, const Silu::Args& args) {
  launch<Silu>(queue, args);
}

}  // namespace tessera
