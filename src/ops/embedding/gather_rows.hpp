#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y[i] = table[ids[i]], decoded to f32: token embedding, and the rows that want logits.
///
/// Shapes: table [V, D], ids [R], y [R, D]. Types: table any weight type, ids u32, y f32.
/// An id outside 0..V-1 gives a row of zeros (the engine refuses such ids before).
/// live: u32 [1], rows in use; rows behind it are neither read nor written. Aliasing: none.
/// Cost: no FLOPs; R rows of table read, y written. Source: seed 000, embedding.
struct GatherRows {
  static constexpr std::string_view kName = "gather_rows";
  struct Args {
    Tensor y, table, ids;
    Tensor live = {};
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("table", args.table, Access::kRead);
    v("ids", args.ids, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void gather_rows(Queue& queue, const GatherRows::Args& args) {
  launch<GatherRows>(queue, args);
}

}  // namespace tessera
