#pragma once

#include <string>
#include <string_view>

#include "device/kernel_table.hpp"
#include "ops/row_team_webgpu.hpp"

namespace tessera {

struct NormTensors {
  Tensor y, x, weight;
  Tensor bias = {}, live = {};
  float eps = 0;
};

/// Records norm_rows.wgsl of this KIND, "rms" or "layer".
void record_norm(Queue& queue, std::string_view op, std::string_view kind,
                 const NormTensors& tensors);

/// Adds the row of `Op`. `tensors(args)` says which they are.
template <typename Op>
void add_norm_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities,
                     std::string_view kind, NormTensors (*tensors)(const typename Op::Args&)) {
  using Args = typename Op::Args;
  table.add<Op>({
      .name = "row_per_team",
      .supports =
          [=](const Args& args, const Caps&) {
            return fits_binding(args.y, capabilities) && fits_binding(args.x, capabilities);
          },
      .run = [=](Queue& queue, const Args& args,
                 const Tensor&) { record_norm(queue, Op::kName, kind, tensors(args)); },
      .traits = {.isa = "core", .reduction_order = "webgpu.team"},
  });
}

}  // namespace tessera
