#pragma once

/// TESSERA_UNROLL: before a loop over a tile of accumulators, which stays in registers only if
/// unrolled completely. TESSERA_DO_NOT_UNROLL: before a short loop that shall become vectors.
#if defined(__clang__)
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_DO_NOT_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 16")
#define TESSERA_DO_NOT_UNROLL _Pragma("GCC unroll 1")
#endif
