#pragma once

#include "ops/op.hpp"

namespace tessera {

enum class GeluKind : uint8_t { kTanh, kErf };

/// y = x Phi(x): exactly, 0.5 x (1 + erf(x / sqrt 2)), or with the usual tanh in place of erf,
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
///
/// Shapes: x and y [M, N]. Types: f32. Aliasing: none.
/// live: u32 [1], rows in use; rows behind it are neither read nor written.
/// Cost: 10 M N FLOPs; x and y once. Source: Hendrycks and Gimpel 2016.
struct Gelu {
  static constexpr std::string_view kName = "gelu";
  struct Args {
    Tensor y, x;
    Tensor live = {};
    GeluKind kind = GeluKind::kTanh;
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
inline void gelu(Queue& queue, const Gelu::Args& args) {
  launch<Gelu>(queue, args);
}

}  // namespace tessera
