#include "ops/matmul/linear_residual.hpp"

#include "ops/matmul/compose.hpp"

namespace tessera {

void add_linear_residual_compose(KernelTable& table) {
  table.add<LinearResidual>({
      .name = "matmul_with_residual",
      .supports = [](const LinearResidual::Args&, const Caps&) { return true; },
      .run =
          [](Queue& queue, const LinearResidual::Args& args, const Tensor&) {
            const QuantisedInput input(queue, args.x, args.live,
                                       takes_q8(args.w, args.activations));
            matmul(queue, {.y = args.y,
                           .x = input.for_weight(args.w),
                           .w = args.w,
                           .bias = args.bias,
                           .residual = args.residual,
                           .live = args.live});
          },
      .traits = {.composed = true},
  });
}

}  // namespace tessera
