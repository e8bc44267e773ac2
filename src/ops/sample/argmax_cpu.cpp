#include "ops/sample/argmax_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/sample/argmax.hpp"

namespace tessera {

void add_argmax_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Argmax, ArgmaxArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(argmax_rows),
       .pack = [](const Argmax::Args& args, const Tensor&) -> ArgmaxArgs {
         return {.ids = host_data<uint32_t>(args.ids),
                 .x = matrix_view(args.x),
                 .live = host_data<const uint32_t>(args.live)};
       }});
}

}  // namespace tessera
