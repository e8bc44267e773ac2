#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "models/language_model.hpp"

namespace tessera {

/// Tokens of a page. A page of one head is then 32 x 64 x 2 = 4 KB in the default model at f16:
/// long enough to stream, short enough that a sequence wastes at most 31 tokens.
inline constexpr int64_t kPageTokens = 32;

/// Pages of one sequence, in order. Only the pool changes it.
using PageTable = std::vector<uint32_t>;

/// Keys and values of all sequences: pages of kPageTokens tokens, each page one slab in every
/// layer. Pages are counted references: sequences with a common beginning share them, and whoever
/// writes into a shared page gets a copy first. Not thread-safe; no step may run during a call.
class KvPool {
 public:
  /// `dtype` f32 or f16. Throws Error{kOutOfMemory}.
  KvPool(Device& device, const ModelFacts& facts, DType dtype, int64_t n_pages);

  static int64_t pages_of(int64_t n_tokens);
  /// Memory of all pages.
  static int64_t size_bytes(const ModelFacts& facts, DType dtype, int64_t n_pages);

  KvView view() const { return {k_pages_, v_pages_}; }
  int64_t n_pages() const { return static_cast<int64_t>(n_references_.size()); }
  int64_t n_free_pages() const { return static_cast<int64_t>(free_.size()); }

  /// Makes room for tokens `length` to `new_length` - 1 in pages that nobody else sees. Throws
  /// Error{kOutOfMemory} and leaves the table as it was when the pages do not suffice.
  void reserve(PageTable& table, int64_t length, int64_t new_length);
  /// Gives back the pages behind the first `length` tokens.
  void truncate(PageTable& table, int64_t length);
  /// A table that shares the pages of the first `length` tokens.
  PageTable share(const PageTable& table, int64_t length);

 private:
  uint32_t take();
  void give(uint32_t page);
  void copy(uint32_t from, uint32_t to);

  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Tensor> k_pages_,
      v_pages_;  // of each layer: [n_pages, n_kv_heads, kPageTokens, head_dim]
  std::vector<uint32_t> n_references_;  // of each page
  std::vector<uint32_t> free_;          // the last one is taken first
};

}  // namespace tessera
