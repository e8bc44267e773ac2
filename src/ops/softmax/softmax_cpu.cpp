#include "ops/softmax/softmax_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/softmax/softmax.hpp"

namespace tessera {

void add_softmax_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Softmax, SoftmaxArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(softmax_rows),
       .pack = [](const Softmax::Args& args, const Tensor&) -> SoftmaxArgs {
         return {.y = matrix_view(args.y), .x = matrix_view(args.x)};
       }});
}

}  // namespace tessera
