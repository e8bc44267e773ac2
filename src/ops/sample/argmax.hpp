#pragma once

#include "ops/op.hpp"

namespace tessera {

/// Index of the largest value of each row; the lowest index among equals. NaN never wins; a row
/// without any other value gives 0.
///
/// Shapes: x [R, C], ids [R]. Types: x f32, ids u32. C >= 1.
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: R C FLOPs; x once.
struct Argmax {
  static constexpr std::string_view kName = "argmax";
  struct Args {
    Tensor ids, x;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("ids", args.ids, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void argmax(Queue& queue, const Argmax::Args& args) {
  launch<Argmax>(queue, args);
}

}  // namespace tessera
