#pragma once

#include "ops/op.hpp"

namespace tessera {

/// y = x dequant(w) with the seeds' flat int4 weights: element (k, n) has the flat index
/// i = k N + n, lies in word i / 8 at bit 4 (i mod 8), and means (nibble - zero[g]) scale[g] with
/// g = i / group_size.
///
/// Shapes: x [M, K], w int4_flat with ceil(K N / 8) words (shape [1, 8 ceil(K N / 8)]),
/// scales and zeros [ceil(K N / group_size)], y [M, N]. Types: x, scales, zeros, y f32.
/// group_size >= 1. Accumulates in f32 or wider. Aliasing: none. live as in Matmul.
/// Cost: 2 M N K FLOPs; every tensor once. Source: seed 000, section 3.
struct MatmulInt4 {
  static constexpr std::string_view kName = "matmul_int4";
  struct Args {
    Tensor y, x, w, scales, zeros;
    Tensor live = {};
    int64_t group_size = 32;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("w", args.w, Access::kRead);
    v("scales", args.scales, Access::kRead);
    v("zeros", args.zeros, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void matmul_int4(Queue& queue, const MatmulInt4::Args& args) {
  launch<MatmulInt4>(queue, args);
}

}  // namespace tessera
