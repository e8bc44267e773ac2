#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = a * b.
///
/// Shapes: a, b and y [M, N]. Types: f32. Aliasing: none (a and b may be the same tensor).
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 1 M N FLOPs; a, b and y once.
struct Mul {
  static constexpr std::string_view kName = "mul";
  struct Args {
    Tensor y, a, b;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("a", args.a, Access::kRead);
    v("b", args.b, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void mul(Queue& queue, const Mul::Args& args) {
  launch<Mul>(queue, args);
}

}  // namespace tessera
