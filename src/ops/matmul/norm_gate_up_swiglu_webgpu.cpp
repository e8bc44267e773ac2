#include "ops/matmul/norm_gate_up_swiglu.hpp"

#include "ops/matmul/compose.hpp"
#include "ops/matmul/few_rows_webgpu.hpp"

namespace tessera {

void add_norm_gate_up_swiglu_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_few_rows<NormGateUpSwiglu>(table, capabilities, [](const NormGateUpSwiglu::Args& args) {
    if (args.norm != NormKind::kRms || takes_q8(args.gate, args.activations) ||
        takes_q8(args.up, args.activations)) {
      return FewRows{};
    }
    return FewRows{.y = {args.y},
                   .w = {args.gate, args.up},
                   .x = args.x,
                   .norm_weight = args.norm_weight,
                   .live = args.live,
                   .eps = args.eps,
                   .gate = true};
  });
}

}  // namespace tessera
