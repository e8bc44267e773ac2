#pragma once

#include "ops/op.hpp"

namespace tessera {

/// Causal attention of a ragged batch of queries over the pages of the KV pool.
///
/// Query t of sequence s at position p sees positions 0..p of that sequence (with window > 0 only
/// the last `window` of them, p included). Position j lies in page block_tables[s][j / page_tokens]
/// at slot j mod page_tokens. Otherwise as Attention. Tokens with sequence -1: y is not written.
/// Shapes: q and y [T, Hq, d], k_pages and v_pages [n_pages, Hkv, page_tokens, d], positions u32
/// [T], sequences i32 [T], block_tables u32 [S, max_pages]. Types: q, y f32; pages f32 or f16. The
/// result of a query does not depend on the other queries of the batch. live: u32 [1], tokens in
/// use; tokens behind it are neither read nor written. Cost: over bounds: every query sees
/// max_pages pages; pages read once a sequence. Source: Kwon et al. 2023 (PagedAttention).
struct PagedAttention {
  static constexpr std::string_view kName = "paged_attention";
  struct Args {
    Tensor y, q, k_pages, v_pages, positions, sequences, block_tables;
    Tensor live = {};
    float scale = 1;
    float soft_cap = 0;  ///< 0: none
    int64_t window = 0;  ///< 0: none
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("q", args.q, Access::kRead);
    v("k_pages", args.k_pages, Access::kRead);
    v("v_pages", args.v_pages, Access::kRead);
    v("positions", args.positions, Access::kRead);
    v("sequences", args.sequences, Access::kRead);
    v("block_tables", args.block_tables, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void paged_attention(Queue& queue, const PagedAttention::Args& args) {
  launch<PagedAttention>(queue, args);
}

}  // namespace tessera
