#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/matmul/matmul_int4.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

constexpr int64_t kTile = 64;    // rows and columns of matmul_int4_rows.wgsl
constexpr int64_t kFewRows = 4;  // of its FEW form
constexpr int64_t kWordValues = 8;

/// Params of matmul_int4_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns, depth, group_size, n_column_tiles;
  RowsView y, x;
  uint32_t w_first, scales_first, zeros_first, live_first;
};

void record_tiles(Queue& queue, const MatmulInt4::Args& args, bool few) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t n_rows = args.y.dim(0), n_columns = args.y.dim(1);
  const int64_t n_column_tiles = ceil_div(n_columns, kTile);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(args.x),
                                           webgpu::read(args.w), webgpu::read(args.scales),
                                           webgpu::read(args.zeros)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const Params params = {
      .n_rows = static_cast<uint32_t>(n_rows),
      .n_columns = static_cast<uint32_t>(n_columns),
      .depth = static_cast<uint32_t>(args.x.dim(1)),
      .group_size = static_cast<uint32_t>(args.group_size),
      .n_column_tiles = static_cast<uint32_t>(n_column_tiles),
      .y = rows_view(args.y, capabilities),
      .x = rows_view(args.x, capabilities),
      .w_first = static_cast<uint32_t>(webgpu::first_element(args.w, capabilities)),
      .scales_first = rows_view(args.scales, capabilities).first,
      .zeros_first = rows_view(args.zeros, capabilities).first,
      .live_first = rows_view(args.live, capabilities).first};
  const int64_t n_row_tiles = few ? 1 : ceil_div(n_rows, kTile);
  const bool quads = n_columns % 4 == 0 && args.group_size % 4 == 0;
  webgpu::record(queue, MatmulInt4::kName,
                 {.file = "ops/matmul/matmul_int4_rows.wgsl",
                  .values = {{"FEW", int64_t{few}},
                             {"QUADS", int64_t{quads}},
                             {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params, webgpu::fold(n_row_tiles * n_column_tiles, capabilities));
}

bool fits(const MatmulInt4::Args& args, const webgpu::Capabilities& capabilities) {
  for (const Tensor* tensor : {&args.y, &args.x, &args.w, &args.scales, &args.zeros}) {
    if (!fits_binding(*tensor, capabilities)) return false;
  }
  // Flat indices are 32 bits wide.
  return args.w.dim(1) <= UINT32_MAX && args.group_size <= UINT32_MAX;
}

}  // namespace

void add_matmul_int4_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<MatmulInt4>({
      .name = "words_of_few_rows",
      .supports =
          [=](const MatmulInt4::Args& args, const Caps&) {
            return args.x.dim(0) >= 1 && args.x.dim(0) <= kFewRows &&
                   args.y.dim(1) % kWordValues == 0 && args.y.dim(1) > 0 &&
                   args.group_size % kWordValues == 0 && fits(args, capabilities);
          },
      .run = [](Queue& queue, const MatmulInt4::Args& args,
                const Tensor&) { record_tiles(queue, args, true); },
      .traits = {.isa = "core", .reduction_order = "webgpu.lanes32"},
  });
  table.add<MatmulInt4>({
      .name = "tile64",
      .supports = [=](const MatmulInt4::Args& args,
                      const Caps&) { return fits(args, capabilities); },
      .run = [](Queue& queue, const MatmulInt4::Args& args,
                const Tensor&) { record_tiles(queue, args, false); },
      .traits = {.isa = "core", .reduction_order = "webgpu.chain"},
  });
}

}  // namespace tessera
