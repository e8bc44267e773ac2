#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/quantize/quantize_rows.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

/// Params of quantize_rows_rows.wgsl.
struct Params {
  uint32_t n_rows, n_blocks;
  RowsView y, x;
  uint32_t live_first;
};

void record_rows(Queue& queue, const QuantizeRows::Args& args) {
  constexpr int64_t kBlock = 32;
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t n_rows = args.x.dim(0), n_blocks = args.x.dim(1) / kBlock;
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(args.x)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  constexpr int64_t kWordBytes = 4;
  const int64_t y_skipped = args.y.offset_bytes % capabilities.storage_alignment_bytes;
  const Params params = {
      .n_rows = static_cast<uint32_t>(n_rows),
      .n_blocks = static_cast<uint32_t>(n_blocks),
      .y = {.first = static_cast<uint32_t>(y_skipped / kWordBytes),
            .stride = static_cast<uint32_t>(args.y.stride_bytes[0] / kWordBytes)},
      .x = rows_view(args.x, capabilities),
      .live_first = rows_view(args.live, capabilities).first};
  webgpu::record(queue, QuantizeRows::kName,
                 {.file = "ops/quantize/quantize_rows_rows.wgsl",
                  .values = {{"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params,
                 webgpu::fold(ceil_div(n_rows * n_blocks, kWorkgroupThreads), capabilities));
}

}  // namespace

void add_quantize_rows_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<QuantizeRows>({
      .name = "thread_per_block",
      .supports =
          [=](const QuantizeRows::Args& args, const Caps&) {
            return fits_binding(args.y, capabilities) && fits_binding(args.x, capabilities);
          },
      .run = [](Queue& queue, const QuantizeRows::Args& args,
                const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
