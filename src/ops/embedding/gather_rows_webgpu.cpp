#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/embedding/gather_rows.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {
namespace {

/// Params of gather_rows_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns, n_table_rows, part_begin, part_rows, ids_first;
  RowsView y;
  WeightView table;
  uint32_t live_first;
};

void record_part(Queue& queue, const GatherRows::Args& args, const RowSlice& part) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const Tensor table = args.table.slice(part.begin, part.count);
  const int64_t n_rows = args.y.dim(0), n_columns = args.y.dim(1);
  const bool is_f32 = table.dtype == DType::kF32;
  const bool is_wide = common_width({args.y}) == 4 && (!is_f32 || common_width({table}) == 4);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(table),
                                           webgpu::read(args.ids)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const int64_t fours = is_wide && is_f32 ? 4 : 1;  // decoding a block is work enough
  WeightView view = weight_view(table, capabilities);
  if (is_wide && is_f32) {
    const RowsView rows = rows_view(table, capabilities, 4);
    view = {.first_byte = rows.first, .row_bytes = rows.stride};
  }
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .n_columns = static_cast<uint32_t>(n_columns),
                         .n_table_rows = static_cast<uint32_t>(args.table.dim(0)),
                         .part_begin = static_cast<uint32_t>(part.begin),
                         .part_rows = static_cast<uint32_t>(part.count),
                         .ids_first = rows_view(args.ids, capabilities).first,
                         .y = rows_view(args.y, capabilities, is_wide ? 4 : 1),
                         .table = view,
                         .live_first = rows_view(args.live, capabilities).first};
  const int64_t n_fours = n_rows * ceil_div<int64_t>(n_columns, 4);
  webgpu::record(queue, GatherRows::kName,
                 {.file = "ops/embedding/gather_rows_rows.wgsl",
                  .values = {{"WEIGHT", weight_value(table)},
                             {"WIDE", int64_t{is_wide}},
                             {"FOURS", fours},
                             {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params,
                 webgpu::fold(ceil_div(n_fours, fours * kWorkgroupThreads), capabilities));
}

}  // namespace

void add_gather_rows_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<GatherRows>({
      .name = "thread_per_four",
      .supports =
          [=](const GatherRows::Args& args, const Caps&) {
            return ops::is_weight_type(args.table.dtype) && fits_binding(args.y, capabilities) &&
                   fits_sliced(args.table, capabilities);
          },
      .run =
          [=](Queue& queue, const GatherRows::Args& args, const Tensor&) {
            for (const RowSlice& part : row_slices(args.table, capabilities)) {
              record_part(queue, args, part);
            }
          },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
