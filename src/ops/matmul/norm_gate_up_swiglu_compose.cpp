#include "ops/matmul/norm_gate_up_swiglu.hpp"

#include "ops/elementwise/swiglu.hpp"
#include "ops/matmul/compose.hpp"

namespace tessera {

void add_norm_gate_up_swiglu_compose(KernelTable& table) {
  table.add<NormGateUpSwiglu>({
      .name = "norm_matmuls_swiglu",
      .supports = [](const NormGateUpSwiglu::Args&, const Caps&) { return true; },
      .run =
          [](Queue& queue, const NormGateUpSwiglu::Args& args, const Tensor&) {
            const NormedInput input(queue, args, {args.gate, args.up});
            const Slot gate(queue.arena(), DType::kF32, args.y.shape);
            const Slot up(queue.arena(), DType::kF32, args.y.shape);
            matmul(
                queue,
                {.y = gate, .x = input.for_weight(args.gate), .w = args.gate, .live = args.live});
            matmul(queue,
                   {.y = up, .x = input.for_weight(args.up), .w = args.up, .live = args.live});
            swiglu(queue, {.y = args.y, .gate = gate, .up = up, .live = args.live});
          },
      .traits = {.composed = true},
  });
}

}  // namespace tessera
