#include "ops/elementwise/add.hpp"

#include "ops/elementwise/elementwise_row_cpu.hpp"

namespace tessera {

void add_add_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Add, ElementwiseArgs>(table, tiers,
                                       {.name = "rows",
                                        .tiers = TESSERA_TIER_TABLE(add_rows),
                                        .pack = [](const Add::Args& args, const Tensor&) {
                                          return elementwise_args(args.y, args.a, args.b,
                                                                  args.live);
                                        }});
}

}  // namespace tessera
