#include "ops/sample/top_k_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/sample/top_k.hpp"

namespace tessera {

void add_top_k_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<TopK, TopKArgs>(table, tiers,
                                 {.name = "heap",
                                  .tiers = {portable::top_k_rows, nullptr, nullptr, nullptr},
                                  .pack = [](const TopK::Args& args, const Tensor&) -> TopKArgs {
                                    return {.values = matrix_view(args.values),
                                            .ids = matrix_view(args.ids),
                                            .x = matrix_view(args.x),
                                            .live = host_data<const uint32_t>(args.live)};
                                  }});
}

}  // namespace tessera
