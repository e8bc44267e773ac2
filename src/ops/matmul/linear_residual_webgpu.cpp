#include "ops/matmul/linear_residual.hpp"

#include "ops/matmul/compose.hpp"
#include "ops/matmul/few_rows_webgpu.hpp"

namespace tessera {

void add_linear_residual_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_few_rows<LinearResidual>(table, capabilities, [](const LinearResidual::Args& args) {
    if (takes_q8(args.w, args.activations)) return FewRows{};
    return FewRows{.y = {args.y},
                   .w = {args.w},
                   .bias = {args.bias},
                   .x = args.x,
                   .residual = args.residual,
                   .live = args.live};
  });
}

}  // namespace tessera
