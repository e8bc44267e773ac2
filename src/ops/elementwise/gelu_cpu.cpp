#include "ops/elementwise/gelu.hpp"

#include "ops/elementwise/elementwise_row_cpu.hpp"

namespace tessera {

void add_gelu_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  const auto pack = [](const Gelu::Args& args, const Tensor&) {
    return elementwise_args(args.y, args.x, args.live);
  };
  add_cpu_kernel<Gelu, ElementwiseArgs>(
      table, tiers,
      {.name = "tanh_rows",
       .tiers = TESSERA_TIER_TABLE(gelu_tanh_rows),
       .pack = pack,
       .supports = [](const Gelu::Args& args) { return args.kind == GeluKind::kTanh; }});
  add_cpu_kernel<Gelu, ElementwiseArgs>(
      table, tiers,
      {.name = "erf_rows",
       .tiers = TESSERA_TIER_TABLE(gelu_erf_rows),
       .pack = pack,
       .supports = [](const Gelu::Args& args) { return args.kind == GeluKind::kErf; }});
}

}  // namespace tessera
