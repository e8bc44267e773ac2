#include "ops/quantize/quantize_rows_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/quantize/quantize_rows.hpp"

namespace tessera {

void add_quantize_rows_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<QuantizeRows, QuantizeRowsArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(quantize_rows),
       .pack = [](const QuantizeRows::Args& args, const Tensor&) -> QuantizeRowsArgs {
         return {.y = matrix_view(args.y),
                 .x = matrix_view(args.x),
                 .live = host_data<const uint32_t>(args.live)};
       }});
}

}  // namespace tessera
