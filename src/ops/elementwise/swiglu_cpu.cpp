#include "ops/elementwise/swiglu.hpp"

#include "ops/elementwise/elementwise_row_cpu.hpp"

namespace tessera {

void add_swiglu_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Swiglu, ElementwiseArgs>(table, tiers,
                                          {.name = "rows",
                                           .tiers = TESSERA_TIER_TABLE(swiglu_rows),
                                           .pack = [](const Swiglu::Args& args, const Tensor&) {
                                             return elementwise_args(args.y, args.gate, args.up,
                                                                     args.live);
                                           }});
}

}  // namespace tessera
