#include "ops/quantize/convert_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/quantize/convert.hpp"
#include "ops/quantize/storage_of.hpp"

namespace tessera {

void add_convert_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Convert, ConvertArgs>(
      table, tiers,
      {.name = "rows",
       .tiers = TESSERA_TIER_TABLE(convert_rows),
       .pack = [](const Convert::Args& args, const Tensor&) -> ConvertArgs {
         return {.y = matrix_view(args.y),
                 .x = matrix_view(args.x),
                 .to = storage_of(args.y.dtype),
                 .from = storage_of(args.x.dtype),
                 .block_size = info(args.x.dtype).block_size,
                 .block_bytes = info(args.x.dtype).block_bytes};
       }});
}

}  // namespace tessera
