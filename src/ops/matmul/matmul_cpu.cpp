#include "ops/matmul/matmul_cpu.hpp"

#include "ops/cpu_row.hpp"
#include "ops/matmul/matmul.hpp"
#include "ops/matmul/packed_blocks.hpp"

namespace tessera {
namespace {

MatmulCpuArgs pack(const Matmul::Args& args, const Tensor& scratch) {
  return {.y = matrix_view(args.y),
          .x = matrix_view(args.x),
          .w = matrix_view(args.w),
          .residual = args.residual.defined() ? matrix_view(args.residual) : MatrixView{},
          .bias = host_data<const float>(args.bias),
          .live = host_data<const uint32_t>(args.live),
          .x_type = static_cast<Storage>(args.x.dtype),
          .w_type = static_cast<Storage>(args.w.dtype),
          .x_is_q8 = args.x.dtype == DType::kQ8,
          .scratch = scratch.defined() ? host_data<float>(scratch) : nullptr};
}

int64_t scratch_bytes(const Matmul::Args& args) {
  return packed_scratch_bytes(args.x.dim(0), args.y.dim(1));
}

/// Every value is one chain of products in the order of K, fused where the tier has the
/// instruction.
std::string_view chain_order(cpu::Tier tier) {
  return tier == cpu::Tier::kPortable ? "k_chain_rounded" : "k_chain";
}

/// Below it, packing w costs more than the faster product gains: rows of w come from memory in
/// short pieces, at 8 of 34 GB/s of one core of an EPYC.
constexpr int64_t kPackedMinTokens = 128;

/// Rows are gathered with 32-bit offsets.
bool has_q8_dot(const Matmul::Args& args) {
  return args.x.dtype == DType::kQ8 && args.order == WeightOrder::kOutIn &&
         is_block_format(args.w.dtype) && args.w.stride_bytes[0] < (int64_t{1} << 26);
}

/// On all AVX tiers, tiles included, the sums of blocks are added one after the other; so are they
/// on the others, with a product rounded before it is added.
std::string_view q8_order(cpu::Tier tier) {
  return tier < cpu::Tier::kAvx2 ? "q8_blocks_rounded" : "q8_blocks";
}

#if defined(__x86_64__)
/// Sums of 16 values would fill a quarter of a tile's depth. Below a tile's worth of tokens vector
/// instructions are as fast and need no decoded panel.
bool has_q8_tiles(const Matmul::Args& args) {
  const DType w = args.w.dtype;
  const bool sums_of_16 = w == DType::kQ2_K || w == DType::kQ3_K || w == DType::kQ6_K;
  return has_q8_dot(args) && !sums_of_16 && args.x.dim(0) >= 16;
}
#endif

}  // namespace

void add_matmul_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  CpuKernel<Matmul, MatmulCpuArgs> q8_dot = {.name = "q8_dot",
                                             .tiers = TESSERA_TIER_TABLE(matmul_q8),
                                             .pack = pack,
                                             .supports = has_q8_dot,
                                             .reduction_order = q8_order};
#if defined(__x86_64__)
  CpuKernel<Matmul, MatmulCpuArgs> q8_tiles = {.name = "q8_tiles",
                                               .tiers = {},
                                               .pack = pack,
                                               .supports = has_q8_tiles,
                                               .reduction_order = q8_order};
  q8_tiles.tiers[static_cast<size_t>(cpu::Tier::kAmx)] = amx::matmul_q8;
  add_cpu_kernel(table, tiers, q8_tiles);
  q8_dot.tiers[static_cast<size_t>(cpu::Tier::kAvx512Vnni)] = avx512vnni::matmul_q8;
#elif defined(__aarch64__)
  q8_dot.tiers[static_cast<size_t>(cpu::Tier::kDotprod)] = dotprod::matmul_q8;
#endif
  add_cpu_kernel(table, tiers, q8_dot);
  add_cpu_kernel<Matmul, MatmulCpuArgs>(table, tiers,
                                        {.name = "packed_rows",
                                         .tiers = TESSERA_TIER_TABLE(matmul_packed),
                                         .pack = pack,
                                         .supports =
                                             [](const Matmul::Args& args) {
                                               return args.order == WeightOrder::kOutIn &&
                                                      !has_q8_dot(args) &&
                                                      args.x.dim(0) >= kPackedMinTokens;
                                             },
                                         .scratch_bytes = scratch_bytes,
                                         .reduction_order = chain_order,
                                         .many_tokens_only = true});
  add_cpu_kernel<Matmul, MatmulCpuArgs>(table, tiers,
                                        {.name = "exact_rows",
                                         .tiers = TESSERA_TIER_TABLE(matmul_rows),
                                         .pack = pack,
                                         .supports = [](const Matmul::Args& args) {
                                           return args.order == WeightOrder::kOutIn &&
                                                  !has_q8_dot(args);
                                         }});
  add_cpu_kernel<Matmul, MatmulCpuArgs>(
      table, tiers,
      {.name = "exact_columns",
       .tiers = TESSERA_TIER_TABLE(matmul_columns),
       .pack = pack,
       .supports = [](const Matmul::Args& args) { return args.order == WeightOrder::kInOut; },
       .scratch_bytes = scratch_bytes,
       .reduction_order = chain_order});
}

}  // namespace tessera
