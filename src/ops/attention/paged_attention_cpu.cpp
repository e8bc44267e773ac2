#include "ops/attention/paged_attention.hpp"

#include "ops/attention/attention_row_cpu.hpp"

namespace tessera {
namespace {

int64_t max_keys(const PagedAttention::Args& args) {
  return args.block_tables.dim(1) * args.k_pages.dim(2);
}

AttentionArgs pack(const PagedAttention::Args& args, const Tensor& scratch) {
  AttentionArgs packed = attention_args(args, scratch);
  packed.k = pages_view(args.k_pages);
  packed.v = pages_view(args.v_pages);
  packed.n_kv_heads = args.k_pages.dim(1);
  packed.max_keys = max_keys(args);
  packed.batch = batch_view(args.positions, args.sequences, args.block_tables);
  packed.live = host_data<const uint32_t>(args.live);
  return packed;
}

}  // namespace

void add_paged_attention_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  // The kernel of `attention` (attention_cpu.inl), compiled there.
  add_cpu_kernel<PagedAttention, AttentionArgs>(
      table, tiers,
      {.name = "key_blocks",
       .tiers = TESSERA_TIER_TABLE(attend),
       .pack = pack,
       .supports =
           [](const PagedAttention::Args& args) { return args.q.dim(2) <= kAttentionPartial; },
       .scratch_bytes =
           [](const PagedAttention::Args& args) {
             return attention_scratch_bytes(args.q, max_keys(args));
           }});
}

}  // namespace tessera
