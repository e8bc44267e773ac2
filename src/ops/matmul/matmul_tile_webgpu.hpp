#pragma once

#include <vector>

#include "ops/matmul/matmul.hpp"
#include "ops/webgpu_row.hpp"
#include "webgpu/tuning.hpp"

namespace tessera {

/// Kernel in the device's tuning: matmul_tile.wgsl.
inline constexpr std::string_view kMatmulTile = "matmul.tile";

/// A configuration of matmul_tile.wgsl. Its cost per workgroup: (tile_rows + tile_columns) * step *
/// 4 bytes of workgroup memory, twice that with pipeline 2; per thread: rows * columns sums, rows +
/// columns values at work, and with a pipeline the (tile_rows + tile_columns) * step / threads
/// values of the next step, all in registers.
struct TileConfig {
  int64_t tile_rows, tile_columns;    ///< of y, a workgroup; multiples of 32
  int64_t step;                       ///< of the depth between barriers; a multiple of 4
  int64_t rows, columns;              ///< of y, a thread; multiples of 4
  int64_t patch_rows, patch_columns;  ///< threads that read neighbouring values
  int64_t pipeline;      ///< 1: load the next step before working on one; 2: and have two buffers
  int64_t min_outputs;   ///< take it for products of at least so many values of y
  int64_t plain_only;    ///< 1: not for weights in block formats
  int64_t split_groups;  ///< split the depth to have about so many workgroups; 0: never
  int64_t split_depth;   ///< but into parts no smaller than this

  explicit TileConfig(const webgpu::KernelConfig& config);
  int64_t threads() const { return tile_rows / rows * (tile_columns / columns); }
  int64_t workgroup_bytes() const {
    return (pipeline == 2 ? 8 : 4) * step * (tile_rows + tile_columns);
  }
  bool runs_on(const webgpu::Capabilities& capabilities) const {
    return threads() <= capabilities.max_workgroup_threads &&
           workgroup_bytes() <= capabilities.max_workgroup_bytes;
  }
  int64_t n_tiles(int64_t n_rows, int64_t n_columns) const;
  /// Parts of the depth for a product of so many tiles.
  int64_t n_splits(int64_t tiles, int64_t depth) const;
};

/// Those of the device's tuning that run on it, else of the default's; in order.
std::vector<TileConfig> tile_configs(const webgpu::Capabilities& capabilities);

/// A product with its options, for any of the contracts that are one.
struct TileProduct {
  Tensor y, x;
  Tensor up = {};  ///< x is silu(x) * up
  Tensor w;
  Tensor bias = {}, residual = {}, live = {};
  WeightOrder order = WeightOrder::kOutIn;
};

bool is_for_tiles(const TileProduct& product, const webgpu::Capabilities& capabilities);

/// Bytes that record_tiles needs to split the depth of this product, or of one with fewer rows; 0
/// where it never does.
int64_t split_scratch_bytes(const TileProduct& product, const webgpu::Capabilities& capabilities);

/// Records a dispatch for every part of w that fits a binding. With scratch the depth may be split:
/// then each is followed by one that adds the parts, in order.
void record_tiles(Queue& queue, std::string_view op, const TileProduct& product,
                  const Tensor& scratch = {});

}  // namespace tessera
