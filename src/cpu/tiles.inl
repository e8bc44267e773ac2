// The tile registers of AMX. Included by kernels of the AMX tier.
//
// In assembly rather than by intrinsics: those of GCC 12 neither read the whole configuration (GCC
// bug 114098) nor say that a tile load reads memory.

#pragma once

#include <stdint.h>

#include "cpu/tier.hpp"

namespace tessera::TESSERA_ISA {
namespace {

/// Shapes of the eight tiles: rows and bytes in a row, 16 and 64 at most.
struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t n_rows[16] = {};

  void set(int i_tile, int64_t rows, int64_t bytes) {
    n_rows[i_tile] = static_cast<uint8_t>(rows);
    row_bytes[i_tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

inline void configure_tiles(const TileConfig& config) {
  asm volatile("ldtilecfg %0" ::"m"(config));
}
/// Back to the state in which the system need not save tiles.
inline void release_tiles() {
  asm volatile("tilerelease");
}

/// Rows lie `stride_bytes` apart.
template <int kTile>
inline void load_tile(const void* source, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(source), "r"(stride_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
inline void store_tile(void* target, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(target), "r"(stride_bytes), "i"(kTile)
               : "memory");
}

/// sum [rows, n] int32 += a [rows, 4 k] int8 times b [k, n] of four int8 each.
template <int kSum, int kA, int kB>
inline void multiply_tiles_int8(void) {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
