#include "ops/elementwise/silu.hpp"

#include "ops/elementwise/elementwise_row_cpu.hpp"

namespace tessera {

void add_silu_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Silu, ElementwiseArgs>(table, tiers,
                                        {.name = "rows",
                                         .tiers = TESSERA_TIER_TABLE(silu_rows),
                                         .pack = [](const Silu::Args& args, const Tensor&) {
                                           return elementwise_args(args.y, args.x, args.live);
                                         }});
}

}  // namespace tessera
