#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

/// Keys are taken in splits of this many positions, counted from position 0 of a sequence. A
/// query's result is the merge of its splits in rising order, whether one thread computes them or
/// several: the order of additions depends on the query's own keys and on nothing else.
inline constexpr int64_t kAttentionSplit = 256;
/// Batches up to this size share out splits, through scratch memory; larger ones have work enough
/// for every thread without.
inline constexpr int64_t kAttentionSplitTokens = 8;
/// Values of partial results that a thread keeps on its stack (64 KiB): head_dim cannot exceed it.
inline constexpr int64_t kAttentionPartial = 16384;

/// One kernel for both contracts: dense keys and values are one page that every query sees.
struct AttentionArgs {
  HeadsView y, q;
  PagesView k, v;
  int64_t n_kv_heads;
  int64_t max_keys;         // positions that the pages or the dense tensors hold
  BatchView batch;          // paged only; dense: positions is null
  int64_t position_offset;  // dense only: of query 0
  bool causal;
  float scale, soft_cap;
  int64_t window;
  const uint32_t* live;
  /// f32 [n_tokens, n_heads, n_splits, 2 + head_dim] (maximum, sum, values) for batches that share
  /// out splits; else null.
  float* partials;
};

TESSERA_DECLARE_TIERS(void attend(const AttentionArgs&, Team&) noexcept)

}  // namespace tessera
