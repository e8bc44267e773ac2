#include "ops/embedding/gather_rows_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/embedding/gather_rows.hpp"
#include "ops/quantize/storage_of.hpp"

namespace tessera {

void add_gather_rows_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<GatherRows, GatherRowsArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(gather_rows),
       .pack = [](const GatherRows::Args& args, const Tensor&) -> GatherRowsArgs {
         return {.y = matrix_view(args.y),
                 .table = matrix_view(args.table),
                 .storage = storage_of(args.table.dtype),
                 .ids = host_data<const uint32_t>(args.ids),
                 .live = host_data<const uint32_t>(args.live)};
       }});
}

}  // namespace tessera
