#pragma once

// Included by kernels compiled for one instruction set: plain data only.

#include <stdint.h>

namespace tessera {

/// One thread's loop over one instruction that no tier of its own stands for.
struct PeakKernel {
  void (*run)(int64_t n_rounds) noexcept;
  int64_t ops_per_round;  ///< a multiply-add is two
};

#if defined(__x86_64__)
namespace avx512bf16 {
extern const PeakKernel kDotBf16;
}
namespace tiles {  // AMX; the operating system must have granted the registers
extern const PeakKernel kTilesBf16, kTilesInt8;
}
#endif

}  // namespace tessera
