#include "engine/kv_pool.hpp"

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"

namespace tessera {

KvPool::KvPool(Device& device, const ModelFacts& facts, DType dtype, int64_t n_pages)
    : n_references_(static_cast<size_t>(n_pages)) {
  const Shape shape = {n_pages, facts.n_kv_heads, kPageTokens, facts.head_dim};
  const auto allocate = [&](std::vector<Tensor>& tensors) {
    tensors.push_back(Tensor::dense(dtype, shape));
    buffers_.push_back(device.allocate(tensors.back().span_bytes()));
    tensors.back().buffer = buffers_.back().get();
  };
  for (int64_t i = 0; i < facts.n_layers; ++i) {
    allocate(k_pages_);
    allocate(v_pages_);
  }
  for (int64_t page = n_pages; page-- > 0;) free_.push_back(static_cast<uint32_t>(page));
}

int64_t KvPool::pages_of(int64_t n_tokens) {
  return ceil_div(n_tokens, kPageTokens);
}

int64_t KvPool::size_bytes(const ModelFacts& facts, DType dtype, int64_t n_pages) {
  const int64_t slab = facts.n_kv_heads * kPageTokens * facts.head_dim * info(dtype).block_bytes;
  return 2 * facts.n_layers * n_pages * slab;
}

void KvPool::reserve(PageTable& table, int64_t length, int64_t new_length) {
  TESSERA_DCHECK(static_cast<int64_t>(table.size()) == pages_of(length) && length <= new_length);
  const bool shared = length % kPageTokens != 0 && n_references_[table.back()] > 1;
  const int64_t n_new = pages_of(new_length) - pages_of(length) + (shared ? 1 : 0);
  if (n_new > n_free_pages()) {
    fail(
        ErrorKind::kOutOfMemory, "KV cache",
        "{} more pages of {} tokens are needed, {} of {} are free; end a session or load the model "
        "for more of them",
        n_new, kPageTokens, n_free_pages(), n_pages());
  }
  if (shared) {
    const uint32_t own = take();
    copy(table.back(), own);
    give(table.back());
    table.back() = own;
  }
  while (static_cast<int64_t>(table.size()) < pages_of(new_length)) table.push_back(take());
}

void KvPool::truncate(PageTable& table, int64_t length) {
  for (; static_cast<int64_t>(table.size()) > pages_of(length); table.pop_back()) {
    give(table.back());
  }
}

PageTable KvPool::share(const PageTable& table, int64_t length) {
  TESSERA_DCHECK(pages_of(length) <= static_cast<int64_t>(table.size()));
  PageTable other(table.begin(), table.begin() + pages_of(length));
  for (const uint32_t page : other) ++n_references_[page];
  return other;
}

uint32_t KvPool::take() {
  const uint32_t page = free_.back();
  free_.pop_back();
  n_references_[page] = 1;
  return page;
}

void KvPool::give(uint32_t page) {
  TESSERA_DCHECK(n_references_[page] > 0);
  if (--n_references_[page] == 0) free_.push_back(page);
}

void KvPool::copy(uint32_t from, uint32_t to) {
  std::vector<std::byte> slab;
  for (const std::vector<Tensor>* tensors : {&k_pages_, &v_pages_}) {
    for (const Tensor& pages : *tensors) {
      slab = read_tensor(pages.slice(from, 1));
      write_tensor(pages.slice(to, 1), slab);
    }
  }
}

}  // namespace tessera
