#include "ops/norm/layernorm.hpp"

#include "ops/norm/norm_row_cpu.hpp"

namespace tessera {

void add_layernorm_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Layernorm, NormArgs>(table, tiers,
                                      {.name = "rows",
                                       .tiers = TESSERA_TIER_TABLE(layernorm_rows),
                                       .pack = [](const Layernorm::Args& args, const Tensor&) {
                                         return norm_args(args, args.bias);
                                       }});
}

}  // namespace tessera
