#include "ops/norm/norm_webgpu.hpp"

namespace tessera {
namespace {

/// Params of norm_rows.wgsl.
struct Params {
  uint32_t n_rows, d;
  float eps;
  uint32_t live_first;
  RowsView y, x;
  uint32_t weight_first, bias_first;
};

}  // namespace

void record_norm(Queue& queue, std::string_view op, std::string_view kind,
                 const NormTensors& tensors) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t width = common_width({tensors.y, tensors.x, tensors.weight, tensors.bias});
  const int64_t n_rows = tensors.x.dim(0), d = tensors.x.dim(1);
  const bool has_bias = tensors.bias.defined(), has_live = tensors.live.defined();
  const RowTeam team = row_team(d);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(tensors.y), webgpu::read(tensors.x),
                                           webgpu::read(tensors.weight)};
  if (has_bias) bindings.push_back(webgpu::read(tensors.bias));
  if (has_live) bindings.push_back(webgpu::read(tensors.live));
  bindings.push_back(webgpu::uniform());
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .d = static_cast<uint32_t>(d),
                         .eps = tensors.eps,
                         .live_first = rows_view(tensors.live, capabilities).first,
                         .y = rows_view(tensors.y, capabilities, width),
                         .x = rows_view(tensors.x, capabilities, width),
                         .weight_first = rows_view(tensors.weight, capabilities, width).first,
                         .bias_first = rows_view(tensors.bias, capabilities, width).first};
  webgpu::record(queue, op,
                 {.file = "ops/norm/norm_rows.wgsl",
                  .values = {{"KIND", std::string(kind)},
                             {"BIAS", int64_t{has_bias}},
                             {"WIDTH", width},
                             {"LIVE", int64_t{has_live}},
                             {"TEAM", team.threads},
                             {"LONG", int64_t{team.is_long}}}},
                 bindings, params, row_team_grid(n_rows, d, capabilities));
}

}  // namespace tessera
