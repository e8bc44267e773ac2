#include "ops/matmul/matmul_int4_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/matmul/matmul_int4.hpp"
#include "ops/matmul/packed_blocks.hpp"

namespace tessera {

void add_matmul_int4_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<MatmulInt4, MatmulInt4CpuArgs>(
      table, tiers,
      {.name = "columns",
       .tiers = TESSERA_TIER_TABLE(matmul_int4),
       .pack = [](const MatmulInt4::Args& args, const Tensor& scratch) -> MatmulInt4CpuArgs {
         return {.y = matrix_view(args.y),
                 .x = matrix_view(args.x),
                 .w = host_data<const unsigned char>(args.w),
                 .scales = host_data<const float>(args.scales),
                 .zeros = host_data<const float>(args.zeros),
                 .group_size = args.group_size,
                 .live = host_data<const uint32_t>(args.live),
                 .scratch = host_data<float>(scratch)};
       },
       .scratch_bytes =
           [](const MatmulInt4::Args& args) {
             return packed_scratch_bytes(args.x.dim(0), args.y.dim(1));
           }});
}

}  // namespace tessera
