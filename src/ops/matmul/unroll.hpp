#pragma once

/// Before a loop over a tile of accumulators: it stays in registers only if unrolled completely.
#if defined(__clang__)
#define TESSERA_UNROLL _Pragma("unroll")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 16")
#endif
