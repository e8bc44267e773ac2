#pragma once

#include "ops/attention/attention_cpu.hpp"
#include "ops/cpu_row.hpp"

namespace tessera {

/// Bytes of partial results; 0 for batches that do not share out splits.
inline int64_t attention_scratch_bytes(const Tensor& q, int64_t max_keys) {
  if (q.dim(0) > kAttentionSplitTokens || max_keys <= kAttentionSplit) return 0;
  const int64_t n_splits = (max_keys + kAttentionSplit - 1) / kAttentionSplit;
  return q.dim(0) * q.dim(1) * n_splits * (2 + q.dim(2)) * static_cast<int64_t>(sizeof(float));
}

/// What both contracts have in common; `scratch` may be absent.
template <typename Args>
AttentionArgs attention_args(const Args& args, const Tensor& scratch) {
  return {.y = heads_view(args.y),
          .q = heads_view(args.q),
          .k = {},
          .v = {},
          .n_kv_heads = 0,
          .max_keys = 0,
          .batch = {},
          .position_offset = 0,
          .causal = true,
          .scale = args.scale,
          .soft_cap = args.soft_cap,
          .window = args.window,
          .live = nullptr,
          .partials = host_data<float>(scratch)};
}

}  // namespace tessera
