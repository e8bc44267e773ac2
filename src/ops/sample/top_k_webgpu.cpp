#include "device/kernel_table.hpp"
#include "ops/sample/top_k.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

/// Params of top_k_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns, k;
  RowsView values, ids, x;
  uint32_t live_first;
};

void record_rows(Queue& queue, const TopK::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.values),
                                           webgpu::read_write(args.ids), webgpu::read(args.x)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const Params params = {.n_rows = static_cast<uint32_t>(args.x.dim(0)),
                         .n_columns = static_cast<uint32_t>(args.x.dim(1)),
                         .k = static_cast<uint32_t>(args.values.dim(1)),
                         .values = rows_view(args.values, capabilities),
                         .ids = rows_view(args.ids, capabilities),
                         .x = rows_view(args.x, capabilities),
                         .live_first = rows_view(args.live, capabilities).first};
  webgpu::record(
      queue, TopK::kName,
      {.file = "ops/sample/top_k_rows.wgsl", .values = {{"LIVE", int64_t{args.live.defined()}}}},
      bindings, params, webgpu::fold(args.x.dim(0), capabilities));
}

}  // namespace

void add_top_k_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<TopK>({
      .name = "row_per_workgroup",
      .supports = [=](const TopK::Args& args,
                      const Caps&) { return fits_binding(args.x, capabilities); },
      .run = [](Queue& queue, const TopK::Args& args, const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
