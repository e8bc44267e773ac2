#include "ops/quantize/convert.hpp"

#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {
namespace {

/// Params of convert_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns;
  RowsView y;
  WeightView x;
};

void record_rows(Queue& queue, const Convert::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t n_rows = args.y.dim(0), n_columns = args.y.dim(1);
  const bool pairs =
      n_columns % 2 == 0 && args.y.offset_bytes % 4 == 0 && args.y.stride_bytes[0] % 4 == 0;
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .n_columns = static_cast<uint32_t>(n_columns),
                         .y = rows_view(args.y, capabilities),
                         .x = weight_view(args.x, capabilities)};
  const int64_t n_fours = n_rows * ceil_div<int64_t>(n_columns, 4);
  webgpu::record(queue, Convert::kName,
                 {.file = "ops/quantize/convert_rows.wgsl",
                  .values = {{"WEIGHT", weight_value(args.x)},
                             {"TARGET", weight_value(args.y)},
                             {"PAIRS", int64_t{pairs}}}},
                 {webgpu::read_write(args.y), webgpu::read(args.x), webgpu::uniform()}, params,
                 webgpu::fold(ceil_div(n_fours, kWorkgroupThreads), capabilities));
}

}  // namespace

void add_convert_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Convert>({
      .name = "thread_per_four",
      .supports =
          [=](const Convert::Args& args, const Caps&) {
            return fits_binding(args.y, capabilities) && fits_binding(args.x, capabilities);
          },
      .run = [](Queue& queue, const Convert::Args& args,
                const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
