#include "ops/matmul/matmul_residual_swiglu_a.hpp"

#include "ops/elementwise/swiglu.hpp"

namespace tessera {

void add_matmul_residual_swiglu_a_compose(KernelTable& table) {
  table.add<MatmulResidualSwigluA>({
      .name = "swiglu_then_matmul",
      .supports = [](const MatmulResidualSwigluA::Args&, const Caps&) { return true; },
      .run =
          [](Queue& queue, const MatmulResidualSwigluA::Args& args, const Tensor&) {
            const Slot hidden(queue.arena(), DType::kF32, args.g.shape);
            swiglu(queue, {.y = hidden, .gate = args.g, .up = args.u, .live = args.live});
            matmul(queue, {.y = args.y,
                           .x = hidden,
                           .w = args.w,
                           .residual = args.residual,
                           .live = args.live,
                           .order = args.order});
          },
      .traits = {.composed = true},
  });
}

}  // namespace tessera
