#include "ops/attention/attention.hpp"

#include "ops/attention/attention_row_cpu.hpp"

namespace tessera {
namespace {

/// Dense [S, Hkv, d] as a page of S positions.
PagesView one_page(const Tensor& dense) {
  return {.data = host_data<unsigned char>(dense),
          .page_tokens = dense.dim(0),
          .page_stride_bytes = 0,
          .head_stride_bytes = dense.stride_bytes[1],
          .slot_stride_bytes = dense.stride_bytes[0],
          .f16 = dense.dtype == DType::kF16};
}

AttentionArgs pack(const Attention::Args& args, const Tensor& scratch) {
  AttentionArgs packed = attention_args(args, scratch);
  packed.k = one_page(args.k);
  packed.v = one_page(args.v);
  packed.n_kv_heads = args.k.dim(1);
  packed.max_keys = args.k.dim(0);
  packed.position_offset = args.position_offset;
  packed.causal = args.causal;
  return packed;
}

}  // namespace

void add_attention_cpu(KernelTable& table, const std::vector<cpu::Tier>& tiers) {
  add_cpu_kernel<Attention, AttentionArgs>(
      table, tiers,
      {.name = "key_blocks",
       .tiers = TESSERA_TIER_TABLE(attend),
       .pack = pack,
       .supports = [](const Attention::Args& args) { return args.q.dim(2) <= kAttentionPartial; },
       .scratch_bytes =
           [](const Attention::Args& args) {
             return attention_scratch_bytes(args.q, args.k.dim(0));
           }});
}

}  // namespace tessera
