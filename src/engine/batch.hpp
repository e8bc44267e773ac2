#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/step_state.hpp"

namespace tessera {

/// The sizes that a step is recorded for. Batches are padded to a bucket, so that few recordings
/// serve all of them.
struct Bucket {
  int64_t n_tokens = 1;
  int64_t n_sequences = 1;
  int64_t n_logit_rows = 0;
  int64_t n_pages = 1;  ///< of the longest sequence
  bool operator==(const Bucket&) const = default;
};

/// The smallest power of two that holds `n`, but no more than `most`; 0 for 0.
int64_t bucket_size(int64_t n, int64_t most);
/// All values of bucket_size for 1..most.
std::vector<int64_t> bucket_sizes(int64_t most);
/// The same for pages, of which there are never fewer than hold 1,024 tokens (or `most`): below
/// that, attention has no other way to go.
int64_t page_bucket_size(int64_t n, int64_t most);
std::vector<int64_t> page_bucket_sizes(int64_t most);

struct BatchLimits {
  int64_t max_tokens = 0;
  int64_t max_sequences = 0;
  int64_t max_logit_rows = 0;
  int64_t max_pages = 0;  ///< of one sequence
  std::vector<double> rope_frequencies;

  Bucket largest_bucket() const { return {max_tokens, max_sequences, max_logit_rows, max_pages}; }
};

/// The state of a bucket inside one buffer, each field on a cache line of its own, and the bytes
/// that it takes in all.
struct StepLayout {
  StepState state;
  int64_t size_bytes = 0;
};
StepLayout lay_out(const Bucket& bucket, const BatchLimits& limits, Buffer* buffer);

/// A ragged batch on the host: tokens with sequence and position, and the rows that want logits.
/// Allocates nothing after construction.
class Batch {
 public:
  explicit Batch(BatchLimits limits);
  const BatchLimits& limits() const { return limits_; }

  void clear();
  /// Appends tokens of one sequence, the first at `position`; the last `n_logit_rows` of them want
  /// logits.
  void add(std::span<const uint32_t> tokens, int64_t position, std::span<const uint32_t> pages,
           int64_t n_logit_rows);

  int64_t n_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t n_logit_rows() const { return static_cast<int64_t>(logit_rows_.size()); }
  /// Of the longest sequence; at least 1.
  int64_t n_pages() const;
  std::span<const uint32_t> positions() const { return positions_; }
  std::span<const int32_t> sequences() const { return sequences_; }
  /// Page of token `i` in the pool.
  uint32_t page_of(size_t i) const;

  Bucket bucket() const;
  /// The bucket without padding.
  Bucket exact_bucket() const;
  /// The bytes of lay_out(bucket), valid until the next call.
  std::span<const std::byte> pack(const Bucket& bucket);

 private:
  BatchLimits limits_;
  std::vector<uint32_t> token_ids_, positions_, logit_rows_;
  std::vector<int32_t> sequences_;
  std::vector<std::span<const uint32_t>> tables_;
  std::vector<std::byte> packed_;
};

}  // namespace tessera
