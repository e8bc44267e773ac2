#pragma once

#include "ops/cases.hpp"

namespace tessera {

/// A sequence of a ragged batch: `n_queries` tokens that end at `length`.
struct PagedSequence {
  int64_t length;
  int64_t n_queries;
  /// Its first pages are those of sequence 0 (a shared prompt).
  int64_t n_shared_pages = 0;
};

/// Positions, sequences and block tables of a batch, with pages in no particular order.
struct PagedBatch {
  int64_t page_tokens = 0, max_pages = 0, n_pages = 0, n_tokens = 0;
  std::vector<double> positions, sequences, block_tables;
  std::vector<bool> slot_used;  ///< [n_pages, page_tokens]: holds a key that some query may see

  int64_t n_sequences() const { return static_cast<int64_t>(block_tables.size()) / max_pages; }
  Tensor positions_tensor() const { return u32({n_tokens}); }
  Tensor sequences_tensor() const { return Tensor::dense(DType::kI32, {n_tokens}); }
  Tensor block_tables_tensor() const { return u32({n_sequences(), max_pages}); }
};

/// Tokens of the sequences interleaved as given, then `n_padding` tokens of sequence -1.
PagedBatch make_paged_batch(const std::vector<PagedSequence>& sequences, int64_t page_tokens,
                            int64_t n_padding);

/// Keys or values [n_pages, n_kv_heads, page_tokens, head_dim]: normal where a slot is used and NaN
/// elsewhere, so that reading a slot that nobody may see shows.
Fill pages_fill(const PagedBatch& batch, int64_t n_kv_heads, int64_t head_dim,
                double deviation = 1);

}  // namespace tessera
