#pragma once

// Included by kernels compiled for one instruction set: plain data and macros only.
//
// Kernels are written once (`*_cpu.inl`) and compiled once per tier, each object in a namespace of
// its own (`tessera::avx2`), with TESSERA_TIER set to one of the numbers below. Everything in such
// an object that is not declared here has internal linkage, so that no AVX-512 copy of an inline
// function can end up in code that an older CPU runs; tools/check_symbols.py checks it.

#include <stdint.h>

#include "base/team.hpp"

// Each family's tiers follow one another; one of x86-64 is AVX2 or more, one of aarch64 is between.
#define TESSERA_TIER_PORTABLE 0    // the compiler's baseline, without fused products
#define TESSERA_TIER_NEON 1        // every aarch64
#define TESSERA_TIER_DOTPROD 2     // and SDOT (FEAT_DotProd): integer dot products only
#define TESSERA_TIER_AVX2 3        // AVX2, FMA, F16C
#define TESSERA_TIER_AVX512 4      // AVX-512 F, BW, DQ, VL, CD
#define TESSERA_TIER_AVX512VNNI 5  // and VNNI: integer dot products only
#define TESSERA_TIER_AMX 6         // and AMX tiles: products of many tokens only

/// Declares a kernel in the namespaces of every tier that the op is compiled for by default.
#if defined(__x86_64__)
#define TESSERA_DECLARE_TIERS(...) \
  namespace portable {             \
  __VA_ARGS__;                     \
  }                                \
  namespace avx2 {                 \
  __VA_ARGS__;                     \
  }                                \
  namespace avx512 {               \
  __VA_ARGS__;                     \
  }
/// The kernels of that name, indexed by Tier; null where a tier has none.
#define TESSERA_TIER_TABLE(kernel) \
  { portable::kernel, nullptr, nullptr, avx2::kernel, avx512::kernel, nullptr, nullptr }
#elif defined(__aarch64__)
#define TESSERA_DECLARE_TIERS(...) \
  namespace portable {             \
  __VA_ARGS__;                     \
  }                                \
  namespace neon {                 \
  __VA_ARGS__;                     \
  }
#define TESSERA_TIER_TABLE(kernel) \
  { portable::kernel, neon::kernel, nullptr, nullptr, nullptr, nullptr, nullptr }
#else
#define TESSERA_DECLARE_TIERS(...) \
  namespace portable {             \
  __VA_ARGS__;                     \
  }
#define TESSERA_TIER_TABLE(kernel) \
  { portable::kernel, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr }
#endif
