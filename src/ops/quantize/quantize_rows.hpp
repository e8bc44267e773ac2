#pragma once

#include "ops/op.hpp"

namespace tessera {

/// Rows of f32 to q8: int8 with one f32 scale per 32 values.
///
/// For each 32 values, in f32 arithmetic: scale = max|x| / 127; q = x (127 / max|x|) rounded to the
/// nearest even; all zero when max|x| is 0 or so small that 127 / max|x| overflows. So |q| <= 127,
/// and the result is the same bits on every device. A block that holds a NaN or an infinity gets
/// scale NaN and q = 0.
/// A row of K values is stored as three planes, each as long as its K / 32 blocks ask:
/// f32 scale [K / 32], f32 sum [K / 32] with sum = scale * (q_0 + ... + q_31), int8 q [K]. The sums
/// serve formats with a minimum or an offset (q4_1, q4_0). In all K / 32 * 40 bytes.
///
/// Shapes: x and y [M, K], K a multiple of 32. Types: x f32, y q8. Aliasing: none.
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 3 M K FLOPs; x and y once.
struct QuantizeRows {
  static constexpr std::string_view kName = "quantize_rows";
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
inline void quantize_rows(Queue& queue, const QuantizeRows::Args& args) {
  launch<QuantizeRows>(queue, args);
}

}  // namespace tessera
