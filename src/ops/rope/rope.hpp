#pragma once

#include "ops/op.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera {

/// Rotates the pairs of every head by the token's angles, in place:
/// (a, b) -> (a cos - b sin, a sin + b cos).
///
/// Shapes: q [T, Hq, d], k [T, Hkv, d] optional, rotation [T, r / 2, 2] (cos, sin;
/// rope/rotation.hpp) with r <= d even; values behind r pass through. Types: f32. In place: q and
/// k. live: u32 [1], tokens in use; tokens behind it are neither read nor written. Cost: 3 T (Hq +
/// Hkv) r FLOPs; q and k read and written once. Source: Su et al. 2021.
struct Rope {
  static constexpr std::string_view kName = "rope";
  struct Args {
    Tensor q;
    Tensor k = {};
    Tensor rotation;
    Tensor live = {};
    RopePairing pairing = RopePairing::kInterleaved;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("q", args.q, Access::kReadWrite);
    v("k", args.k, Access::kReadWrite);
    v("rotation", args.rotation, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void rope(Queue& queue, const Rope::Args& args) {
  launch<Rope>(queue, args);
}

}  // namespace tessera
