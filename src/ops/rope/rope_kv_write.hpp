#pragma once

#include "ops/attention/paged_attention.hpp"
#include "ops/op.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera {

/// Rotates q in place, rotates k and stores it and v in their pages of the KV pool.
///
/// Token t of sequence s at position p goes to page block_tables[s][p / page_tokens], slot
/// p mod page_tokens (layout: PagedAttention). Tokens with sequence -1 are skipped, q included.
/// Shapes: q [T, Hq, d], k and v [T, Hkv, d], rotation [T, r / 2, 2], k_pages and v_pages
/// [n_pages, Hkv, page_tokens, d], positions u32 [T], sequences i32 [T], block_tables u32
/// [S, max_pages]. Types: q, k, v, rotation f32; pages f32 or f16 (round to nearest even).
/// In place: q. No two tokens of a step share sequence and position. live as in Rope.
struct RopeKvWrite {
  static constexpr std::string_view kName = "rope_kv_write";
  struct Args {
    Tensor q, k_pages, v_pages;
    Tensor k, v, rotation, positions, sequences, block_tables;
    Tensor live = {};
    RopePairing pairing = RopePairing::kInterleaved;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("q", args.q, Access::kReadWrite);
    v("k_pages", args.k_pages, Access::kReadWrite);
    v("v_pages", args.v_pages, Access::kReadWrite);
    v("k", args.k, Access::kRead);
    v("v", args.v, Access::kRead);
    v("rotation", args.rotation, Access::kRead);
    v("positions", args.positions, Access::kRead);
    v("sequences", args.sequences, Access::kRead);
    v("block_tables", args.block_tables, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void rope_kv_write(Queue& queue, const RopeKvWrite::Args& args) {
  launch<RopeKvWrite>(queue, args);
}

}  // namespace tessera
