#pragma once

// Included by kernels compiled for one instruction set: plain data only.

#include <stdint.h>

#include "cpu/tier.hpp"

namespace tessera {

/// The loops that find one thread's limits, for one tier.
struct ProbeKernels {
  /// Reads `size_bytes` (a multiple of 4096) `n_passes` times, as 1, 2, 4 or 8 streams side by
  /// side.
  void (*read)(const unsigned char* data, int64_t size_bytes, int n_streams,
               int64_t n_passes) noexcept;
  /// Copies `size_bytes` (a multiple of 4096, both ends on a multiple of 64) `n_passes` times;
  /// `bypass`: with stores that go around the caches, where the tier has them.
  void (*copy)(unsigned char* target, const unsigned char* source, int64_t size_bytes, bool bypass,
               int64_t n_passes) noexcept;
  /// Independent chains of f32 multiply-adds.
  void (*multiply_add)(int64_t n_rounds) noexcept;
  int64_t flops_per_round;
  /// Independent chains of int8 dot products into int32; null where the tier has none.
  void (*dot_int8)(int64_t n_rounds) noexcept;
  int64_t int8_ops_per_round;
};

namespace portable {
extern const ProbeKernels kProbeKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const ProbeKernels kProbeKernels;
}
namespace avx512 {
extern const ProbeKernels kProbeKernels;
}
namespace avx512vnni {
extern const ProbeKernels kProbeKernels;
}
namespace amx {
extern const ProbeKernels kProbeKernels;
}
#elif defined(__aarch64__)
namespace neon {
extern const ProbeKernels kProbeKernels;
}
namespace dotprod {
extern const ProbeKernels kProbeKernels;
}
#endif

}  // namespace tessera
