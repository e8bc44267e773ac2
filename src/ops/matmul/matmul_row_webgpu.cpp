#include "base/checked.hpp"
#include "ops/matmul/matmul_webgpu.hpp"

namespace tessera {
namespace {

constexpr int64_t kRowColumns = 8;  // of matmul_row.wgsl

/// Params of matmul_row.wgsl.
struct RowParams {
  uint32_t n_columns, depth;
  uint32_t y_first, x_first;
  WeightView w;
  uint32_t bias_first, residual_first, live_first;
};

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
  webgpu::record(queue, Matmul::kName, matmul_kernel("ops/matmul/matmul_row.wgsl", args, x_width),
                 bindings_of(args), params,
                 webgpu::fold(ceil_div(args.y.dim(1), kRowColumns), capabilities));
}

}  // namespace

void add_matmul_row_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Matmul>({
      .name = "row_per_lanes",
      .supports =
          [=](const Matmul::Args& args, const Caps&) {
            return args.x.dim(0) == 1 && is_for_matmul_kernels(args, capabilities);
          },
      .run = [](Queue& queue, const Matmul::Args& args, const Tensor&) { record_row(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.tree32"},
  });
}

}  // namespace tessera
