#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/arena.hpp"
#include "device/device.hpp"
#include "device/queue.hpp"
#include "engine/batch.hpp"
#include "engine/kv_pool.hpp"
#include "engine/trace.hpp"
#include "models/language_model.hpp"

namespace tessera {

class Engine;

/// Tokens and their cache: a handle into the engine, which must outlive it. Used by one thread at a
/// time.
class Sequence {
 public:
  explicit Sequence(Engine& engine);
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  ~Sequence();

  /// Tokens whose keys and values are in the cache.
  std::span<const uint32_t> tokens() const { return tokens_; }
  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }

  /// Keeps the longest common beginning of the cache and `tokens`, at most `most` tokens of it, and
  /// drops the rest. Returns the new length.
  int64_t reuse_prefix(std::span<const uint32_t> tokens, int64_t most);
  /// A sequence that shares the cache of the first `length` tokens.
  Sequence fork(int64_t length) const;

 private:
  friend class Engine;
  Engine* engine_;
  std::vector<uint32_t> tokens_;
  PageTable pages_;
};

enum class LogitRows : uint8_t {
  kNone,
  kLast,  ///< of the last token
  kAll,
};

/// Tokens to append to a sequence in one step.
struct StepRequest {
  Sequence* sequence = nullptr;
  std::span<const uint32_t> tokens;
  LogitRows rows = LogitRows::kLast;
};

/// What a step gave, for the rows of its requests in their order.
struct StepResult {
  std::vector<uint32_t> greedy_ids;  ///< argmax; the lowest id among equals
  std::vector<float> logits;         ///< [n_rows, vocab_size], if asked for
};

struct EngineOptions {
  int64_t context = 0;        ///< tokens that a sequence can hold
  int64_t max_sequences = 1;  ///< sequences that the KV pool has pages for
  int64_t max_step_tokens = 512;
  DType kv_dtype = DType::kF16;
  bool allow_reference = false;
  std::filesystem::path trace_tensors;  ///< empty: none
};

/// Runs a model's steps on one device: owns queue, arena and KV pool. Steps of several threads take
/// turns. A step that fails leaves engine and sequences as they were, unless the device is lost.
class Engine {
 public:
  /// Plans every bucket. Throws Error{kOutOfMemory} with both numbers when the memory does not
  /// suffice, Error{kUnsupported} listing the ops that only the reference could run.
  Engine(Device& device, KernelTable table, const LanguageModel& model,
         const EngineOptions& options);
  ~Engine();

  const LanguageModel& model() const { return model_; }
  int64_t context() const { return options_.context; }
  int64_t max_sequences() const { return options_.max_sequences; }
  int64_t max_step_tokens() const { return limits_.max_tokens; }
  /// Most rows of logits of one step. 64 rows keep the logits of a vocabulary of 150,000 under
  /// 40 MB and are enough for products to run at their full rate.
  int64_t max_logit_rows() const { return limits_.max_logit_rows; }
  int64_t kv_bytes() const { return kv_bytes_; }
  /// Memory of a step besides weights and KV pool.
  int64_t arena_bytes() const { return step_bytes_; }

  /// Appends the tokens of each request to its sequence, all in one step. No sequence twice; in all
  /// at most max_step_tokens() tokens and max_logit_rows() rows. `result` is overwritten; its
  /// memory is reused. Throws Error{kInvalidArgument} for a token that is not of the vocabulary,
  /// Error{kOutOfMemory} when the context or the pages are used up, and what the device reports.
  void step(std::span<const StepRequest> requests, bool want_logits, StepResult& result);

  /// The ops of a step of `n_tokens` behind `n_past` tokens, with their rows and costs.
  std::vector<OpRecord> plan(int64_t n_tokens, int64_t n_past) const;

 private:
  friend class Sequence;
  struct RecordedStep {
    Bucket bucket;
    std::unique_ptr<Step> step;
  };

  void plan_buckets();
  void plan_step(PlanQueue& queue, const Bucket& bucket, int64_t n_pages) const;
  void check_memory() const;
  void build_batch(std::span<const StepRequest> requests);
  void run_batch();
  const Step& recorded_step(const Bucket& bucket);
  std::unique_ptr<Step> record(const Bucket& bucket);
  StepOutputs outputs(int64_t n_logit_rows) const;
  void read_results(bool want_logits, StepResult& result) const;

  Device& device_;
  KernelTable table_;
  const LanguageModel& model_;
  EngineOptions options_;
  BatchLimits limits_;
  int64_t kv_bytes_ = 0;
  int64_t step_bytes_ = 0;

  std::mutex mutex_;  // guards what follows
  Arena arena_;
  std::unique_ptr<Queue> queue_;
  std::optional<KvPool> kv_pool_;
  std::unique_ptr<Buffer> state_buffer_, logits_buffer_, ids_buffer_;
  std::vector<RecordedStep> recorded_steps_;
  std::optional<Batch> batch_;
  std::unique_ptr<TensorTrace> trace_;
};

}  // namespace tessera
