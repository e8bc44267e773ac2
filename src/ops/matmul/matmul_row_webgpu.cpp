#include "ops/matmul/few_rows_webgpu.hpp"
#include "ops/matmul/matmul.hpp"
#include "ops/matmul/matmul_webgpu.hpp"

namespace tessera {

void add_matmul_row_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_few_rows<Matmul>(table, capabilities, [](const Matmul::Args& args) {
    if (args.order != WeightOrder::kOutIn) return FewRows{};
    return FewRows{.y = {args.y},
                   .w = {args.w},
                   .bias = {args.bias},
                   .x = args.x,
                   .residual = args.residual,
                   .live = args.live};
  });
}

}  // namespace tessera
