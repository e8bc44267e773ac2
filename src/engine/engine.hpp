#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
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
  /// Waits until no step of this sequence is in flight.
  void settle() const noexcept;

  Engine* engine_;
  std::vector<uint32_t> tokens_;
  PageTable pages_;
  int64_t n_in_flight_ = 0;   // tokens of started steps, behind tokens_
  uint64_t last_flight_ = 0;  // the step started last,
  int64_t last_row_ = -1;     // its row of results (-1: none),
  uint32_t last_id_ = 0;      // and that row's greedy id, once the step is finished
};

enum class LogitRows : uint8_t {
  kNone,
  kLast,  ///< of the last token
  kAll,
};

/// Tokens to append to a sequence in one step.
struct StepRequest {
  Sequence* sequence = nullptr;
  /// Empty: one token, the greedy id of the sequence's last step, which may still be in flight.
  std::span<const uint32_t> tokens;
  LogitRows rows = LogitRows::kLast;

  int64_t n_tokens() const { return tokens.empty() ? 1 : static_cast<int64_t>(tokens.size()); }
};

/// What a step gave, for the rows of its requests in their order.
struct StepResult {
  std::vector<uint32_t> greedy_ids;  ///< argmax; the lowest id among equals
  std::vector<float> logits;         ///< [n_rows, vocab_size], if asked for
};

/// A step between Engine::start and finish(), for the thread that started it. Dropped without
/// finish(), it runs all the same. A sequence that is changed or destroyed before waits for it; the
/// engine must outlive it.
class StartedStep {
 public:
  StartedStep() = default;
  StartedStep(StartedStep&& other) noexcept;
  StartedStep& operator=(StartedStep&& other) noexcept;
  ~StartedStep();
  explicit operator bool() const { return flight_ != nullptr; }

  /// Waits for the step, and for nothing started after it. `result` is overwritten; its memory is
  /// reused. Throws what the device reports; the step's tokens then do not count, nor do steps
  /// started after it.
  void finish(StepResult& result);

 private:
  friend class Engine;
  struct Flight;
  StartedStep(Engine& engine, Flight& flight) : engine_(&engine), flight_(&flight) {}
  Engine* engine_ = nullptr;
  Flight* flight_ = nullptr;
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
  /// at most max_step_tokens() tokens and max_logit_rows() rows. Throws Error{kInvalidArgument} for
  /// a token that is not of the vocabulary, Error{kOutOfMemory} when the context or the pages are
  /// used up.
  ///
  /// On an asynchronous device (Caps) this returns while the step runs, so that the next one can be
  /// started before this one's tokens are known; elsewhere the step is done.
  StartedStep start(std::span<const StepRequest> requests, bool want_logits);
  /// start() and finish().
  void step(std::span<const StepRequest> requests, bool want_logits, StepResult& result);

  /// The ops of a step of `n_tokens` of one sequence that holds `n_past`, or of one token of each
  /// of `n_tokens` sequences that do, with their rows and costs.
  enum class Tokens { kOfOneSequence, kOfOneEach };
  std::vector<OpRecord> plan(int64_t n_tokens, int64_t n_past,
                             Tokens tokens = Tokens::kOfOneSequence) const;

  /// Calls it for every op of later steps, which then are recorded anew each time; null ends that.
  /// Not beside trace_tensors.
  void observe(OpObserver* observer);

 private:
  friend class Sequence;
  friend class StartedStep;
  using Flight = StartedStep::Flight;
  struct RecordedStep {
    Bucket bucket;
    std::unique_ptr<Step> step;
  };

  void plan_buckets();
  void plan_step(PlanQueue& queue, const Bucket& bucket) const;
  void check_memory() const;
  void check_requests(std::span<const StepRequest> requests) const;
  bool follows_on_device(const Sequence& sequence) const;
  void build_batch(std::span<const StepRequest> requests);
  void run_batch(std::span<const StepRequest> requests, bool want_logits);
  Flight& take_off(std::span<const StepRequest> requests, bool want_logits);
  void settle(uint64_t number);
  void land(Flight& flight);
  Status receive(Flight& flight);
  void commit(Flight& flight);
  void release(Flight& flight);
  const Step& recorded_step(const Bucket& bucket);
  std::unique_ptr<Step> record(const Bucket& bucket);
  StepOutputs outputs(int64_t n_logit_rows) const;

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
  // Steps in the order of their start, landed ones at the front until their owner takes them.
  std::list<Flight> flights_, free_flights_;
  uint64_t n_started_ = 0;
  std::unique_ptr<TensorTrace> trace_;
};

}  // namespace tessera
