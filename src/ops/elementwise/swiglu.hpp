#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = silu(gate) * up.
///
/// Shapes: gate, up and y [M, N]. Types: f32. Aliasing: none (gate and up may be the same tensor).
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 5 M N FLOPs; gate, up and y once. Source: Shazeer 2020.
struct Swiglu {
  static constexpr std::string_view kName = "swiglu";
  struct Args {
    Tensor y, gate, up;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("gate", args.gate, Access::kRead);
    v("up", args.up, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void swiglu(Queue& queue, const Swiglu::Args& args) {
  launch<Swiglu>(queue, args);
}

}  // namespace tessera
