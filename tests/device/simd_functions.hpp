#pragma once

// Included by objects compiled for one instruction set: plain data only.

#include <stdint.h>

#include "cpu/tier.hpp"

namespace tessera {

/// The functions of cpu/simd.hpp over arrays whose length is a multiple of 16.
struct SimdFunctions {
  void (*exp)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
};

TESSERA_DECLARE_TIERS(SimdFunctions simd_functions())

}  // namespace tessera
