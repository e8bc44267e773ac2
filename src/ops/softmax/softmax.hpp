#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = exp(x - max(x)) / sum(exp(x - max(x))), row by row. A row of -infinity gives zeros.
///
/// Shapes: x and y [R, C]. Types: f32. Sums in f32 or wider. Aliasing: none.
/// Cost: 4 R C FLOPs; x and y once.
struct Softmax {
  static constexpr std::string_view kName = "softmax";
  struct Args {
    Tensor y, x;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void softmax(Queue& queue, const Softmax::Args& args) {
  launch<Softmax>(queue, args);
}

}  // namespace tessera
