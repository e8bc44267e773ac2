#include "ops/elementwise/elementwise_webgpu.hpp"

#include "base/checked.hpp"

namespace tessera {
namespace {

/// Params of elementwise_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns;
  RowsView y, a, b;
  uint32_t live_first;
};

}  // namespace

void record_elementwise(Queue& queue, std::string_view op, std::string_view operation,
                        const ElementwiseTensors& tensors) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t width = common_width({tensors.y, tensors.a, tensors.b});
  const bool is_dense = tensors.y.is_dense() && tensors.a.is_dense() &&
                        (!tensors.b.defined() || tensors.b.is_dense());
  const bool has_b = tensors.b.defined(), has_live = tensors.live.defined();
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(tensors.y), webgpu::read(tensors.a)};
  if (has_b) bindings.push_back(webgpu::read(tensors.b));
  if (has_live) bindings.push_back(webgpu::read(tensors.live));
  bindings.push_back(webgpu::uniform());
  const int64_t n_columns = tensors.y.dim(1) / width;
  const Params params = {.n_rows = static_cast<uint32_t>(tensors.y.dim(0)),
                         .n_columns = static_cast<uint32_t>(n_columns),
                         .y = rows_view(tensors.y, capabilities, width),
                         .a = rows_view(tensors.a, capabilities, width),
                         .b = rows_view(tensors.b, capabilities, width),
                         .live_first = rows_view(tensors.live, capabilities).first};
  const int64_t n_groups = ceil_div(tensors.y.dim(0) * n_columns, kWorkgroupThreads);
  webgpu::record(queue, op,
                 {.file = "ops/elementwise/elementwise_rows.wgsl",
                  .values = {{"OP", std::string(operation)},
                             {"INPUTS", int64_t{has_b ? 2 : 1}},
                             {"WIDTH", width},
                             {"DENSE", int64_t{is_dense}},
                             {"LIVE", int64_t{has_live}}}},
                 bindings, params, webgpu::fold(n_groups, capabilities));
}

}  // namespace tessera
