#include "ops/matmul/matmul.hpp"

#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {
namespace {

constexpr int64_t kRowColumns = 8;  // of matmul_row.wgsl
constexpr int64_t kTile = 64;       // of matmul_tile.wgsl

/// Params of matmul_row.wgsl.
struct RowParams {
  uint32_t n_columns, depth;
  uint32_t y_first, x_first;
  WeightView w;
  uint32_t bias_first, residual_first, live_first;
};

/// Params of matmul_tile.wgsl.
struct TileParams {
  uint32_t n_rows, n_columns, depth, n_column_tiles;
  RowsView y, x;
  WeightView w;
  uint32_t bias_first;
  RowsView residual;
  uint32_t live_first;
};

std::vector<webgpu::Binding> bindings_of(const Matmul::Args& args) {
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(args.x),
                                           webgpu::read(args.w)};
  for (const Tensor& optional : {args.bias, args.residual, args.live}) {
    if (optional.defined()) bindings.push_back(webgpu::read(optional));
  }
  bindings.push_back(webgpu::uniform());
  return bindings;
}

webgpu::Kernel kernel_of(std::string file, const Matmul::Args& args, int64_t x_width) {
  return {.file = std::move(file),
          .values = {{"WEIGHT", weight_value(args.w)},
                     {"WIDTH", x_width},
                     {"BIAS", int64_t{args.bias.defined()}},
                     {"RESIDUAL", int64_t{args.residual.defined()}},
                     {"LIVE", int64_t{args.live.defined()}}}};
}

void record_row(Queue& queue, const Matmul::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t x_width = common_width({args.x});
  const RowParams params = {.n_columns = static_cast<uint32_t>(args.y.dim(1)),
                            .depth = static_cast<uint32_t>(args.x.dim(1)),
                            .y_first = rows_view(args.y, capabilities).first,
                            .x_first = rows_view(args.x, capabilities, x_width).first,
                            .w = weight_view(args.w, capabilities),
                            .bias_first = rows_view(args.bias, capabilities).first,
                            .residual_first = rows_view(args.residual, capabilities).first,
                            .live_first = rows_view(args.live, capabilities).first};
  webgpu::record(queue, Matmul::kName, kernel_of("ops/matmul/matmul_row.wgsl", args, x_width),
                 bindings_of(args), params,
                 webgpu::fold(ceil_div(args.y.dim(1), kRowColumns), capabilities));
}

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
  webgpu::record(queue, Matmul::kName, kernel_of("ops/matmul/matmul_tile.wgsl", args, x_width),
                 bindings_of(args), params,
                 webgpu::fold(ceil_div(n_rows, kTile) * n_column_tiles, capabilities));
}

bool is_for_kernels(const Matmul::Args& args, const webgpu::Capabilities& capabilities) {
  return args.x.dtype == DType::kF32 && has_weight_four(args.w.dtype) &&
         args.order == WeightOrder::kOutIn && fits_binding(args.y, capabilities) &&
         fits_binding(args.x, capabilities) && fits_binding(args.w, capabilities) &&
         fits_binding(args.residual, capabilities);
}

}  // namespace

void add_matmul_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Matmul>({
      .name = "row_per_lanes",
      .supports =
          [=](const Matmul::Args& args, const Caps&) {
            return args.x.dim(0) == 1 && is_for_kernels(args, capabilities);
          },
      .run = [](Queue& queue, const Matmul::Args& args, const Tensor&) { record_row(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.tree32"},
  });
  table.add<Matmul>({
      .name = "tile64",
      .supports = [=](const Matmul::Args& args,
                      const Caps&) { return is_for_kernels(args, capabilities); },
      .run = [](Queue& queue, const Matmul::Args& args,
                const Tensor&) { record_tiles(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.chain"},
  });
}

}  // namespace tessera
