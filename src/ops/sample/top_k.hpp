#pragma once

#include "ops/op.hpp"

namespace tessera {

/// The k largest values of each row in falling order, lower indices first among equals. NaN counts
/// as smaller than everything.
///
/// Shapes: x [R, C], values and ids [R, k] with 1 <= k <= C. Types: x and values f32, ids u32.
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: R C FLOPs; x, values and ids once.
struct TopK {
  static constexpr std::string_view kName = "top_k";
  struct Args {
    Tensor values, ids, x;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("values", args.values, Access::kWrite);
    v("ids", args.ids, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void top_k(Queue& queue, const TopK::Args& args) {
  launch<TopK>(queue, args);
}

}  // namespace tessera
