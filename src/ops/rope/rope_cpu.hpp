#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

/// f32 [n_tokens, n_pairs, 2]: cos and sin.
struct RotationView {
  const unsigned char* data;
  int64_t n_pairs, token_stride_bytes, pair_stride_bytes;
  bool interleaved;  // which values form a pair: RopePairing
};

struct RopeArgs {
  HeadsView q, k;  // k without heads when it is absent
  RotationView rotation;
  const uint32_t* live;
};

TESSERA_DECLARE_TIERS(void rope_tokens(const RopeArgs&, Team&) noexcept)

}  // namespace tessera
