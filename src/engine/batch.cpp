#include "engine/batch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "engine/kv_pool.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera {

int64_t bucket_size(int64_t n, int64_t most) {
  if (n == 0) return 0;
  return std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))), most);
}

std::vector<int64_t> bucket_sizes(int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < most; size *= 2) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

namespace {

constexpr int64_t kFewestPages = 1024 / kPageTokens;

}  // namespace

int64_t page_bucket_size(int64_t n, int64_t most) {
  return bucket_size(std::max(n, std::min(kFewestPages, most)), most);
}

std::vector<int64_t> page_bucket_sizes(int64_t most) {
  std::vector<int64_t> sizes = bucket_sizes(most);
  std::erase_if(sizes, [&](int64_t size) { return size < std::min(kFewestPages, most); });
  return sizes;
}

StepLayout lay_out(const Bucket& bucket, const BatchLimits& limits, Buffer* buffer) {
  constexpr int64_t kFieldAlignment = 64;
  const auto n_pairs = static_cast<int64_t>(limits.rope_frequencies.size());
  StepLayout layout;
  const auto place = [&](DType dtype, const Shape& shape) {
    const Tensor field = Tensor::dense(dtype, shape, buffer, layout.size_bytes);
    layout.size_bytes = round_up(layout.size_bytes + field.span_bytes(), kFieldAlignment);
    return field;
  };
  layout.state.n_tokens = place(DType::kU32, {1});
  layout.state.n_logit_rows = place(DType::kU32, {1});
  layout.state.token_ids = place(DType::kU32, {bucket.n_tokens});
  layout.state.positions = place(DType::kU32, {bucket.n_tokens});
  layout.state.sequences = place(DType::kI32, {bucket.n_tokens});
  layout.state.rotation = place(DType::kF32, {bucket.n_tokens, n_pairs, 2});
  layout.state.block_tables = place(DType::kU32, {bucket.n_sequences, bucket.n_pages});
  layout.state.logit_rows = place(DType::kU32, {bucket.n_logit_rows});
  return layout;
}

Batch::Batch(BatchLimits limits) : limits_(std::move(limits)) {
  const auto max_tokens = static_cast<size_t>(limits_.max_tokens);
  token_ids_.reserve(max_tokens);
  positions_.reserve(max_tokens);
  sequences_.reserve(max_tokens);
  logit_rows_.reserve(static_cast<size_t>(limits_.max_logit_rows));
  tables_.reserve(static_cast<size_t>(limits_.max_sequences));
  const Bucket largest = limits_.largest_bucket();
  packed_.resize(static_cast<size_t>(lay_out(largest, limits_, nullptr).size_bytes));
}

void Batch::clear() {
  token_ids_.clear();
  positions_.clear();
  sequences_.clear();
  logit_rows_.clear();
  tables_.clear();
}

void Batch::add(std::span<const uint32_t> tokens, int64_t position, std::span<const uint32_t> pages,
                int64_t n_logit_rows) {
  const auto n_added = static_cast<int64_t>(tokens.size());
  TESSERA_DCHECK(n_tokens() + n_added <= limits_.max_tokens && n_logit_rows <= n_added);
  TESSERA_DCHECK(static_cast<int64_t>(pages.size()) <= limits_.max_pages);
  const auto sequence = static_cast<int32_t>(tables_.size());
  tables_.push_back(pages);
  for (int64_t i = 0; i < n_added; ++i) {
    if (i >= n_added - n_logit_rows) logit_rows_.push_back(static_cast<uint32_t>(n_tokens()));
    token_ids_.push_back(tokens[static_cast<size_t>(i)]);
    positions_.push_back(static_cast<uint32_t>(position + i));
    sequences_.push_back(sequence);
  }
}

uint32_t Batch::page_of(size_t i) const {
  return tables_[static_cast<size_t>(sequences_[i])][positions_[i] / kPageTokens];
}

Bucket Batch::bucket() const {
  return {.n_tokens = bucket_size(n_tokens(), limits_.max_tokens),
          .n_sequences = bucket_size(static_cast<int64_t>(tables_.size()), limits_.max_sequences),
          .n_logit_rows = bucket_size(n_logit_rows(), limits_.max_logit_rows),
          .n_pages = page_bucket_size(n_pages(), limits_.max_pages)};
}

Bucket Batch::exact_bucket() const {
  return {n_tokens(), static_cast<int64_t>(tables_.size()), n_logit_rows(), n_pages()};
}

int64_t Batch::n_pages() const {
  size_t longest = 1;
  for (const std::span<const uint32_t>& table : tables_) longest = std::max(longest, table.size());
  return static_cast<int64_t>(longest);
}

std::span<const std::byte> Batch::pack(const Bucket& bucket) {
  const StepLayout layout = lay_out(bucket, limits_, nullptr);
  const auto n_bytes = static_cast<size_t>(layout.size_bytes);
  std::memset(packed_.data(), 0, n_bytes);
  const auto put = [&](const Tensor& field, const auto& values) {
    std::memcpy(packed_.data() + field.offset_bytes, values.data(),
                values.size() * sizeof(values[0]));
  };
  const StepState& state = layout.state;
  put(state.n_tokens, std::array{static_cast<uint32_t>(n_tokens())});
  put(state.n_logit_rows, std::array{static_cast<uint32_t>(n_logit_rows())});
  put(state.token_ids, token_ids_);
  put(state.positions, positions_);
  put(state.logit_rows, logit_rows_);
  std::memset(packed_.data() + state.sequences.offset_bytes, 0xFF,  // -1: padding
              static_cast<size_t>(state.sequences.span_bytes()));
  put(state.sequences, sequences_);
  for (size_t i = 0; i < tables_.size(); ++i) {
    put(state.block_tables.slice(static_cast<int64_t>(i), 1), tables_[i]);
  }
  // The fields are aligned to 64 bytes and the vector to at least 16: floats may be written in
  // place.
  const std::span rotation(reinterpret_cast<float*>(packed_.data() + state.rotation.offset_bytes),
                           token_ids_.size() * limits_.rope_frequencies.size() * 2);
  rope_rotation(limits_.rope_frequencies, positions_, rotation);
  return {packed_.data(), n_bytes};
}

}  // namespace tessera
