#include "ops/elementwise/mul.hpp"

#include "ops/elementwise/elementwise_row_cpu.hpp"

namespace tessera {

void add_mul_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Mul, ElementwiseArgs>(table, tiers,
                                       {.name = "rows",
                                        .tiers = TESSERA_TIER_TABLE(mul_rows),
                                        .pack = [](const Mul::Args& args, const Tensor&) {
                                          return elementwise_args(args.y, args.a, args.b,
                                                                  args.live);
                                        }});
}

}  // namespace tessera
