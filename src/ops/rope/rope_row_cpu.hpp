#pragma once

#include "ops/cpu_row.hpp"
#include "ops/rope/rope_cpu.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera {

inline RotationView rotation_view(const Tensor& rotation, RopePairing pairing) {
  return {.data = host_data<const unsigned char>(rotation),
          .n_pairs = rotation.dim(1),
          .token_stride_bytes = rotation.stride_bytes[0],
          .pair_stride_bytes = rotation.stride_bytes[1],
          .interleaved = pairing == RopePairing::kInterleaved};
}

}  // namespace tessera
