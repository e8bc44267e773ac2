#include "ops/rope/rope_kv_write_cpu.hpp"

#include "ops/rope/rope_kv_write.hpp"
#include "ops/rope/rope_row_cpu.hpp"

namespace tessera {

void add_rope_kv_write_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<RopeKvWrite, RopeKvWriteArgs>(
      table, tiers,
      {.name = "tokens",
       .tiers = TESSERA_TIER_TABLE(rope_kv_write_tokens),
       .pack = [](const RopeKvWrite::Args& args, const Tensor&) -> RopeKvWriteArgs {
         return {.q = heads_view(args.q),
                 .k = heads_view(args.k),
                 .v = heads_view(args.v),
                 .k_pages = pages_view(args.k_pages),
                 .v_pages = pages_view(args.v_pages),
                 .rotation = rotation_view(args.rotation, args.pairing),
                 .batch = batch_view(args.positions, args.sequences, args.block_tables),
                 .live = host_data<const uint32_t>(args.live)};
       }});
}

}  // namespace tessera
