#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu/isa.hpp"
#include "cpu/queue.hpp"
#include "device/kernel_table.hpp"
#include "ops/cpu_views.hpp"

namespace tessera {

/// A kernel of every tier as rows of the op `Op`: how to describe one kernel compiled several
/// times. `Pod` is the plain data that the kernel takes.
template <typename Op, typename Pod>
struct CpuKernel {
  using Args = typename Op::Args;
  using Function = void (*)(const Pod&, Team&) noexcept;

  std::string_view name;           ///< what it does: "rows" becomes the row "rows.avx2"
  Function tiers[cpu::kNumTiers];  ///< TESSERA_TIER_TABLE(kernel)
  Pod (*pack)(const Args&, const Tensor& scratch);
  bool (*supports)(const Args&) = nullptr;  ///< all arguments when null
  int64_t (*scratch_bytes)(const Args&) = nullptr;
  /// Kernels mostly sum over their tier's vector width: an order of its own for each tier.
  std::string_view (*reduction_order)(cpu::Tier) = cpu::name;
  bool many_tokens_only = false;  ///< as RowTraits
};

/// Adds a row for each of the tiers (best first) that the kernel is compiled for.
template <typename Op, typename Pod>
void add_cpu_kernel(KernelTable& table, const std::vector<cpu::Tier>& tiers,
                    const CpuKernel<Op, Pod>& kernel) {
  using Args = typename Op::Args;
  for (const cpu::Tier tier : tiers) {
    const auto function = kernel.tiers[static_cast<size_t>(tier)];
    if (!function) continue;
    Row<Op> row = {
        .name = std::string(kernel.name) + "." + std::string(cpu::name(tier)),
        .supports = [supports = kernel.supports](
                        const Args& args, const Caps&) { return !supports || supports(args); },
        .run =
            [function, pack = kernel.pack](Queue& queue, const Args& args, const Tensor& scratch) {
              cpu::cpu_queue(queue).record<Pod>(Op::kName, function, pack(args, scratch));
            },
        .traits = {.isa = cpu::name(tier),
                   .reduction_order = kernel.reduction_order(tier),
                   .many_tokens_only = kernel.many_tokens_only},
    };
    if (kernel.scratch_bytes) row.scratch_bytes = kernel.scratch_bytes;
    table.add<Op>(std::move(row));
  }
}

inline MatrixView matrix_view(const Tensor& tensor) {
  return {.data = host_data<unsigned char>(tensor),
          .n_rows = tensor.dim(0),
          .n_cols = tensor.dim(1),
          .stride_bytes = tensor.stride_bytes[0]};
}

inline HeadsView heads_view(const Tensor& tensor) {
  return {.data = host_data<unsigned char>(tensor),
          .n_tokens = tensor.dim(0),
          .n_heads = tensor.dim(1),
          .head_dim = tensor.dim(2),
          .token_stride_bytes = tensor.stride_bytes[0],
          .head_stride_bytes = tensor.stride_bytes[1]};
}

inline PagesView pages_view(const Tensor& tensor) {
  return {.data = host_data<unsigned char>(tensor),
          .page_tokens = tensor.dim(2),
          .page_stride_bytes = tensor.stride_bytes[0],
          .head_stride_bytes = tensor.stride_bytes[1],
          .slot_stride_bytes = tensor.stride_bytes[2],
          .f16 = tensor.dtype == DType::kF16};
}

inline BatchView batch_view(const Tensor& positions, const Tensor& sequences,
                            const Tensor& block_tables) {
  return {.positions = host_data<const uint32_t>(positions),
          .sequences = host_data<const int32_t>(sequences),
          .block_tables = matrix_view(block_tables)};
}

}  // namespace tessera
