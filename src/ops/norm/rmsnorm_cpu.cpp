#include "ops/norm/rmsnorm.hpp"

#include "ops/norm/norm_row_cpu.hpp"

namespace tessera {

void add_rmsnorm_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Rmsnorm, NormArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(rmsnorm_rows),
       .pack = [](const Rmsnorm::Args& args, const Tensor&) { return norm_args(args, Tensor{}); }});
}

}  // namespace tessera
