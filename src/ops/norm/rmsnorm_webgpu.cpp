#include "ops/norm/rmsnorm.hpp"

#include "device/kernel_table.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

/// Params of rmsnorm_rows.wgsl.
struct Params {
  uint32_t n_rows, d;
  float eps;
  uint32_t live_first;
  RowsView y, x;
  uint32_t weight_first;
};

void record_rows(Queue& queue, const Rmsnorm::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t width = common_width({args.y, args.x, args.weight});
  const int64_t n_rows = args.x.dim(0), d = args.x.dim(1);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(args.x),
                                           webgpu::read(args.weight)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .d = static_cast<uint32_t>(d),
                         .eps = args.eps,
                         .live_first = rows_view(args.live, capabilities).first,
                         .y = rows_view(args.y, capabilities, width),
                         .x = rows_view(args.x, capabilities, width),
                         .weight_first = rows_view(args.weight, capabilities, width).first};
  webgpu::record(queue, Rmsnorm::kName,
                 {.file = "ops/norm/rmsnorm_rows.wgsl",
                  .values = {{"WIDTH", width}, {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params, webgpu::fold(n_rows, capabilities));
}

}  // namespace

void add_rmsnorm_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Rmsnorm>({
      .name = "row_per_workgroup",
      .supports =
          [=](const Rmsnorm::Args& args, const Caps&) {
            return fits_binding(args.y, capabilities) && fits_binding(args.x, capabilities);
          },
      .run = [](Queue& queue, const Rmsnorm::Args& args,
                const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.tree256"},
  });
}

}  // namespace tessera
