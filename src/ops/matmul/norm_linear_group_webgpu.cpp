#include "ops/matmul/norm_linear_group.hpp"

#include "ops/matmul/compose.hpp"
#include "ops/matmul/few_rows_webgpu.hpp"

namespace tessera {

void add_norm_linear_group_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_few_rows<NormLinearGroup>(table, capabilities, [](const NormLinearGroup::Args& args) {
    if (args.norm != NormKind::kRms) return FewRows{};
    for (const Tensor& w : args.w) {
      if (w.defined() && takes_q8(w, args.activations)) return FewRows{};
    }
    return FewRows{.y = args.y,
                   .w = args.w,
                   .bias = args.bias,
                   .x = args.x,
                   .norm_weight = args.norm_weight,
                   .live = args.live,
                   .eps = args.eps};
  });
}

}  // namespace tessera
