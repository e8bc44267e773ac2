#pragma once

#include "ops/cpu_row.hpp"
#include "ops/norm/norm_cpu.hpp"

namespace tessera {

/// `bias` may be absent.
template <typename Args>
NormArgs norm_args(const Args& args, const Tensor& bias) {
  return {.y = matrix_view(args.y),
          .x = matrix_view(args.x),
          .weight = host_data<const float>(args.weight),
          .bias = host_data<const float>(bias),
          .live = host_data<const uint32_t>(args.live),
          .eps = args.eps};
}

}  // namespace tessera
