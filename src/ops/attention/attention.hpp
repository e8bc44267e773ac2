#pragma once

#include "ops/op.hpp"

namespace tessera {

/// Softmax attention of T queries over S dense keys and values.
///
/// y[t, h] = sum_j p_j v[j, g], p = softmax_j(cap(scale q[t, h] . k[j, g])), g = h / (Hq / Hkv),
/// over the visible j: with `causal`, j <= position_offset + t; with window > 0 also
/// j > position_offset + t - window. cap(s) = soft_cap tanh(s / soft_cap) when soft_cap > 0.
/// A query that sees no key gives zeros.
/// Shapes: q and y [T, Hq, d], k and v [S, Hkv, d], Hkv divides Hq. Types: q, y f32; k, v f32 or
/// f16. Softmax subtracts the maximum; sums in f32 or wider. Aliasing: none. Cost: 4 d FLOPs a
/// visible pair of query and key of each head; q, k, v, y once. Source: Vaswani et al. 2017; GQA:
/// Ainslie et al. 2023; soft cap: Gemma 2 report.
struct Attention {
  static constexpr std::string_view kName = "attention";
  struct Args {
    Tensor y, q, k, v;
    float scale = 1;
    float soft_cap = 0;  ///< 0: none
    int64_t window = 0;  ///< 0: none
    int64_t position_offset = 0;
    bool causal = true;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("q", args.q, Access::kRead);
    v("k", args.k, Access::kRead);
    v("v", args.v, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void attention(Queue& queue, const Attention::Args& args) {
  launch<Attention>(queue, args);
}

}  // namespace tessera
