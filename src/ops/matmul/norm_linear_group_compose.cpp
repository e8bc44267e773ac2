#include "ops/matmul/compose.hpp"
#include "ops/matmul/norm_linear_group.hpp"

namespace tessera {

void add_norm_linear_group_compose(KernelTable& table) {
  table.add<NormLinearGroup>({
      .name = "norm_then_matmuls",
      .supports = [](const NormLinearGroup::Args&, const Caps&) { return true; },
      .run =
          [](Queue& queue, const NormLinearGroup::Args& args, const Tensor&) {
            const NormedInput input(queue, args, {args.w[0], args.w[1], args.w[2]});
            for (size_t i = 0; i < args.w.size() && args.w[i].defined(); ++i) {
              matmul(queue, {.y = args.y[i],
                             .x = input.for_weight(args.w[i]),
                             .w = args.w[i],
                             .bias = args.bias[i],
                             .live = args.live});
            }
          },
      .traits = {.composed = true},
  });
}

}  // namespace tessera
