#include "base/checked.hpp"
#include "ops/matmul/matmul_webgpu.hpp"

namespace tessera {
namespace {

constexpr int64_t kTile = 64;  // of matmul_tile.wgsl

/// Params of matmul_tile.wgsl.
struct TileParams {
  uint32_t n_rows, n_columns, depth, n_column_tiles;
  RowsView y, x;
  WeightView w;
  uint32_t bias_first;
  RowsView residual;
  uint32_t live_first;
};

void record_tiles(Queue& queue, const Matmul::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t x_width = common_width({args.x});
  const int64_t n_rows = args.y.dim(0), n_columns = args.y.dim(1);
  const int64_t n_column_tiles = ceil_div(n_columns, kTile);
  const TileParams params = {.n_rows = static_cast<uint32_t>(n_rows),
                             .n_columns = static_cast<uint32_t>(n_columns),
                             .depth = static_cast<uint32_t>(args.x.dim(1)),
                             .n_column_tiles = static_cast<uint32_t>(n_column_tiles),
                             .y = rows_view(args.y, capabilities),
                             .x = rows_view(args.x, capabilities, x_width),
                             .w = weight_view(args.w, capabilities),
                             .bias_first = rows_view(args.bias, capabilities).first,
                             .residual = rows_view(args.residual, capabilities),
                             .live_first = rows_view(args.live, capabilities).first};
  webgpu::record(queue, Matmul::kName, matmul_kernel("ops/matmul/matmul_tile.wgsl", args, x_width),
                 bindings_of(args), params,
                 webgpu::fold(ceil_div(n_rows, kTile) * n_column_tiles, capabilities));
}

}  // namespace

void add_matmul_tile_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Matmul>({
      .name = "tile64",
      .supports = [=](const Matmul::Args& args,
                      const Caps&) { return is_for_matmul_kernels(args, capabilities); },
      .run = [](Queue& queue, const Matmul::Args& args,
                const Tensor&) { record_tiles(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.chain"},
  });
}

}  // namespace tessera
