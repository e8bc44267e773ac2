#pragma once

#include <algorithm>

#include "base/check.hpp"
#include "ops/op.hpp"
#include "ops/reference.hpp"

// What the references of the attention ops share.

namespace tessera::ref {

/// One query over the keys it sees [n, d] and their values: Attention (attention_ref.cpp).
Values attend(const Values& q, std::span<const Values> keys, std::span<const Values> values,
              double scale, double soft_cap);

/// The first position that a query at `position` sees.
inline int64_t first_visible(int64_t position, int64_t window) {
  return window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
}

/// Checks that query heads share key heads evenly.
void check_heads(std::string_view what, int64_t n_heads, int64_t n_kv_heads, int64_t head_dim);
/// Checks soft_cap and window.
void check_visibility(std::string_view op, float soft_cap, int64_t window);

/// The row of pages [n_pages, Hkv, page_tokens, d] that holds a position of a sequence.
inline int64_t page_row(const Tensor& pages, const Tensor& block_tables, int64_t sequence,
                        int64_t position, int64_t kv_head) {
  const int64_t page_tokens = pages.dim(2);
  TESSERA_DCHECK(sequence < block_tables.dim(0) && position / page_tokens < block_tables.dim(1));
  const int64_t page = read_index(block_tables.slice(sequence, 1), position / page_tokens);
  TESSERA_DCHECK(page < pages.dim(0));
  return (page * pages.dim(1) + kv_head) * page_tokens + position % page_tokens;
}

/// Checks pages, positions, sequences, block tables and live of PagedAttention and RopeKvWrite.
template <typename Args>
void check_pages(std::string_view op, const Args& args, int64_t n_tokens, int64_t n_kv_heads,
                 int64_t head_dim) {
  const auto named = [&](const char* tensor) { return fmt::format("{}.{}", op, tensor); };
  ops::expect(named("k_pages"), args.k_pages, {DType::kF32, DType::kF16},
              {-1, n_kv_heads, -1, head_dim});
  const int64_t n_pages = args.k_pages.dim(0), page_tokens = args.k_pages.dim(2);
  ops::require(page_tokens >= 1, named("k_pages"),
               "expected pages of at least one token, got shape {}; make the pool with pages of "
               "16 or 32 tokens",
               args.k_pages.shape.to_string());
  ops::expect(named("v_pages"), args.v_pages, {args.k_pages.dtype},
              {n_pages, n_kv_heads, page_tokens, head_dim});
  ops::expect(named("positions"), args.positions, {DType::kU32}, {n_tokens});
  ops::expect(named("sequences"), args.sequences, {DType::kI32}, {n_tokens});
  ops::expect(named("block_tables"), args.block_tables, {DType::kU32}, {-1, -1});
  ops::expect_optional(named("live"), args.live, {DType::kU32}, {1});
}

}  // namespace tessera::ref
