#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = x in another storage type: block formats and plain types decoded to f32, f16 or bf16
/// (rounded to nearest even).
///
/// Shapes: x and y [M, K]. Types: x any weight type, y f32, f16 or bf16. Aliasing: none.
/// Cost: no FLOPs; x and y once. (tensor/convert.hpp is its scalar twin on the host.)
struct Convert {
  static constexpr std::string_view kName = "convert";
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
inline void convert(Queue& queue, const Convert::Args& args) {
  launch<Convert>(queue, args);
}

}  // namespace tessera
