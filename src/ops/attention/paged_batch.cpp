#include "ops/attention/paged_batch.hpp"

#include <limits>

namespace tessera {

PagedBatch make_paged_batch(const std::vector<PagedSequence>& sequences, int64_t page_tokens,
                            int64_t n_padding) {
  PagedBatch batch;
  batch.page_tokens = page_tokens;
  batch.max_pages = 1;
  for (const PagedSequence& sequence : sequences) {
    batch.max_pages = std::max(batch.max_pages, (sequence.length + page_tokens - 1) / page_tokens);
  }
  // A page of its own for each entry of the tables, handed out from the last to the first; entries
  // behind a sequence's end name page 0, which nobody uses.
  int64_t next_page = static_cast<int64_t>(sequences.size()) * batch.max_pages;
  batch.n_pages = next_page + 1;
  batch.slot_used.resize(static_cast<size_t>(batch.n_pages * page_tokens));
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (int64_t p = 0; p < batch.max_pages; ++p) {
      int64_t page = 0;
      if (p < sequences[s].n_shared_pages) {
        page = static_cast<int64_t>(batch.block_tables[static_cast<size_t>(p)]);
      } else if (p * page_tokens < sequences[s].length) {
        page = next_page--;
      }
      batch.block_tables.push_back(static_cast<double>(page));
      for (int64_t j = 0; j < page_tokens && p * page_tokens + j < sequences[s].length; ++j) {
        batch.slot_used[static_cast<size_t>(page * page_tokens + j)] = true;
      }
    }
  }
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (int64_t i = 0; i < sequences[s].n_queries; ++i) {
      batch.positions.push_back(
          static_cast<double>(sequences[s].length - sequences[s].n_queries + i));
      batch.sequences.push_back(static_cast<double>(s));
    }
  }
  for (int64_t i = 0; i < n_padding; ++i) {
    batch.positions.push_back(0);
    batch.sequences.push_back(-1);
  }
  batch.n_tokens = static_cast<int64_t>(batch.positions.size());
  return batch;
}

Fill pages_fill(const PagedBatch& batch, int64_t n_kv_heads, int64_t head_dim, double deviation) {
  return [=, used = batch.slot_used, page_tokens = batch.page_tokens](std::span<double> out,
                                                                      CaseRandom& random) {
    fill::normal(deviation)(out, random);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / head_dim;  // of [n_pages, n_kv_heads, page_tokens]
      const int64_t slot = row / (n_kv_heads * page_tokens) * page_tokens + row % page_tokens;
      if (!used[static_cast<size_t>(slot)]) out[i] = std::numeric_limits<double>::quiet_NaN();
    }
  };
}

}  // namespace tessera
