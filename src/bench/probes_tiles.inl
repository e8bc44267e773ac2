// The limits of AMX: products of tiles of 16 rows of 64 bytes.

#include <immintrin.h>

#include "bench/peak_kernels.hpp"

namespace tessera::tiles {
namespace {

/// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t n_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// All eight tiles are 16 rows of 64 bytes: six sums of zero, two factors of bf16 ones.
inline void configure() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.n_rows[i] = 16;
  }
  // Not _tile_loadconfig: GCC up to 12.3 believes that it reads 8 bytes (PR114098).
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  alignas(64) uint16_t ones[16 * 32];
  for (uint16_t& one : ones) one = 0x3f80;
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
}

// A product occupies the unit for 16 cycles and takes 52: six sums in flight.
constexpr int kSums = 6;

void tiles_bf16(int64_t n_rounds) noexcept {
  configure();
  for (int64_t round = 0; round < n_rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
}

void tiles_int8(int64_t n_rounds) noexcept {
  configure();
  for (int64_t round = 0; round < n_rounds; ++round) {
    _tile_dpbssd(0, 6, 7);
    _tile_dpbssd(1, 6, 7);
    _tile_dpbssd(2, 6, 7);
    _tile_dpbssd(3, 6, 7);
    _tile_dpbssd(4, 6, 7);
    _tile_dpbssd(5, 6, 7);
  }
  _tile_release();
}

}  // namespace

// 16 x 16 sums of 32 (bf16) or 64 (int8) products.
const PeakKernel kTilesBf16 = {.run = tiles_bf16,
                               .ops_per_round = int64_t{2} * 16 * 16 * 32 * kSums};
const PeakKernel kTilesInt8 = {.run = tiles_int8,
                               .ops_per_round = int64_t{2} * 16 * 16 * 64 * kSums};

}  // namespace tessera::tiles
