#include "ops/rope/rope_cpu.hpp"

#include "ops/rope/rope.hpp"
#include "ops/rope/rope_row_cpu.hpp"

namespace tessera {

void add_rope_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Rope, RopeArgs>(table, tiers,
                                 {.name = "tokens",
                                  .tiers = TESSERA_TIER_TABLE(rope_tokens),
                                  .pack = [](const Rope::Args& args, const Tensor&) -> RopeArgs {
                                    return {
                                        .q = heads_view(args.q),
                                        .k = args.k.defined() ? heads_view(args.k) : HeadsView{},
                                        .rotation = rotation_view(args.rotation, args.pairing),
                                        .live = host_data<const uint32_t>(args.live)};
                                  }});
}

}  // namespace tessera
