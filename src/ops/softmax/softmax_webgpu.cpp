#include "device/kernel_table.hpp"
#include "ops/row_team_webgpu.hpp"
#include "ops/softmax/softmax.hpp"

namespace tessera {
namespace {

/// Params of softmax_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns;
  RowsView y, x;
};

void record_rows(Queue& queue, const Softmax::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t width = common_width({args.y, args.x});
  const int64_t n_rows = args.x.dim(0), n_columns = args.x.dim(1);
  const RowTeam team = row_team(n_columns);
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .n_columns = static_cast<uint32_t>(n_columns),
                         .y = rows_view(args.y, capabilities, width),
                         .x = rows_view(args.x, capabilities, width)};
  webgpu::record(
      queue, Softmax::kName,
      {.file = "ops/softmax/softmax_rows.wgsl",
       .values = {{"WIDTH", width}, {"TEAM", team.threads}, {"LONG", int64_t{team.is_long}}}},
      {webgpu::read_write(args.y), webgpu::read(args.x), webgpu::uniform()}, params,
      row_team_grid(n_rows, n_columns, capabilities));
}

}  // namespace

void add_softmax_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Softmax>({
      .name = "row_per_team",
      .supports =
          [=](const Softmax::Args& args, const Caps&) {
            return fits_binding(args.y, capabilities) && fits_binding(args.x, capabilities);
          },
      .run = [](Queue& queue, const Softmax::Args& args,
                const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.team"},
  });
}

}  // namespace tessera
