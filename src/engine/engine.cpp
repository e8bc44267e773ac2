#include "engine/engine.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"

namespace tessera {
namespace {

constexpr int64_t kMaxLogitRows = 64;

/// Stands for device memory while nothing runs: tensors of different stand-ins do not overlap.
class StandIn final : public Buffer {
 public:
  explicit StandIn(Device& device) : Buffer(device, 0) {}
};

BatchLimits make_limits(const ModelFacts& facts, const EngineOptions& options) {
  BatchLimits limits;
  const int64_t most_useful = options.context * options.max_sequences;
  limits.max_tokens =
      std::max(std::min(options.max_step_tokens, most_useful), options.max_sequences);
  limits.max_sequences = options.max_sequences;
  limits.max_logit_rows =
      std::min(limits.max_tokens, std::max(kMaxLogitRows, options.max_sequences));
  limits.max_pages = KvPool::pages_of(options.context);
  limits.rope_frequencies = facts.rope_frequencies;
  return limits;
}

int64_t rows_of(const StepRequest& request) {
  switch (request.rows) {
    case LogitRows::kNone:
      return 0;
    case LogitRows::kLast:
      return 1;
    case LogitRows::kAll:
      break;
  }
  return static_cast<int64_t>(request.tokens.size());
}

}  // namespace

Sequence::Sequence(Engine& engine) : engine_(&engine) {
  // Growing later must not allocate in the middle of decoding.
  tokens_.reserve(static_cast<size_t>(engine.context()));
  pages_.reserve(static_cast<size_t>(KvPool::pages_of(engine.context())));
}

Sequence::Sequence(Sequence&& other) noexcept
    : engine_(other.engine_),
      tokens_(std::move(other.tokens_)),
      pages_(std::exchange(other.pages_, {})) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(tokens_, other.tokens_);
  std::swap(pages_, other.pages_);
  return *this;
}

Sequence::~Sequence() {
  if (pages_.empty()) return;
  const std::lock_guard lock(engine_->mutex_);
  engine_->kv_pool_->truncate(pages_, 0);
}

int64_t Sequence::reuse_prefix(std::span<const uint32_t> tokens, int64_t most) {
  const size_t limit = std::min(tokens.size(), static_cast<size_t>(most));
  size_t n_common = 0;
  while (n_common < std::min(limit, tokens_.size()) && tokens_[n_common] == tokens[n_common]) {
    ++n_common;
  }
  tokens_.resize(n_common);
  const std::lock_guard lock(engine_->mutex_);
  engine_->kv_pool_->truncate(pages_, length());
  return length();
}

Sequence Sequence::fork(int64_t length) const {
  TESSERA_DCHECK(length <= this->length());
  Sequence other(*engine_);
  other.tokens_.assign(tokens_.begin(), tokens_.begin() + length);
  const std::lock_guard lock(engine_->mutex_);
  const PageTable shared = engine_->kv_pool_->share(pages_, length);
  other.pages_.assign(shared.begin(), shared.end());
  return other;
}

Engine::Engine(Device& device, KernelTable table, const LanguageModel& model,
               const EngineOptions& options)
    : device_(device),
      table_(std::move(table)),
      model_(model),
      options_(options),
      limits_(make_limits(model.facts(), options)),
      arena_(device) {
  const ModelFacts& facts = model.facts();
  const Bucket largest = {limits_.max_tokens, limits_.max_sequences, limits_.max_logit_rows};
  const int64_t n_pages = limits_.max_pages * options.max_sequences;
  const int64_t state_bytes = lay_out(largest, limits_, nullptr).size_bytes;
  const StepOutputs largest_outputs = outputs(largest.n_logit_rows);
  plan_buckets();
  kv_bytes_ = KvPool::size_bytes(facts, options.kv_dtype, n_pages);
  step_bytes_ = arena_.size_bytes() + state_bytes + largest_outputs.logits.span_bytes() +
                largest_outputs.greedy_ids.span_bytes();
  check_memory();

  batch_.emplace(limits_);
  arena_.allocate();
  queue_ = device.make_queue(table_, arena_);
  kv_pool_.emplace(device, facts, options.kv_dtype, n_pages);
  state_buffer_ = device.allocate(state_bytes);
  logits_buffer_ = device.allocate(largest_outputs.logits.span_bytes());
  ids_buffer_ = device.allocate(largest_outputs.greedy_ids.span_bytes());
  if (!options.trace_tensors.empty()) {
    trace_ = std::make_unique<TensorTrace>(options.trace_tensors);
    queue_->set_observer(trace_.get());
  }
}

Engine::~Engine() = default;

/// Runs the model's code over the buckets, so that the arena has its slots and what has no kernel
/// is known. The head depends on the rows alone and all before it on the tokens alone, so it is
/// enough to meet each size of either once.
void Engine::plan_buckets() {
  table_.allow_reference(true);  // to name at once all ops that have no kernel
  std::set<std::string> on_reference;
  PlanQueue queue(device_, table_, arena_);
  for (const int64_t n_tokens : bucket_sizes(limits_.max_tokens)) {
    for (const int64_t n_rows : {int64_t{0}, std::min(n_tokens, limits_.max_logit_rows)}) {
      plan_step(queue, {n_tokens, limits_.max_sequences, n_rows}, limits_.max_pages);
      for (const OpRecord& record : queue.records()) {
        if (record.reference) on_reference.emplace(record.op);
      }
    }
  }
  if (!on_reference.empty() && !options_.allow_reference) {
    fail(ErrorKind::kUnsupported, device_.caps().kind,
         "no kernel for {}; --allow-reference runs the slow reference instead",
         fmt::join(on_reference, ", "));
  }
  table_.allow_reference(options_.allow_reference);
}

void Engine::plan_step(PlanQueue& queue, const Bucket& bucket, int64_t n_pages) const {
  const ModelFacts& facts = model_.facts();
  std::vector<std::unique_ptr<StandIn>> places;
  const auto place = [&](Tensor tensor) {
    places.push_back(std::make_unique<StandIn>(device_));
    tensor.buffer = places.back().get();
    return tensor;
  };
  const Tensor pages =
      Tensor::dense(options_.kv_dtype, {n_pages, facts.n_kv_heads, kPageTokens, facts.head_dim});
  std::vector<Tensor> k_pages, v_pages;
  for (int64_t i = 0; i < facts.n_layers; ++i) {
    k_pages.push_back(place(pages));
    v_pages.push_back(place(pages));
  }
  BatchLimits limits = limits_;
  limits.max_pages = n_pages;
  StandIn state(device_);
  StepOutputs results = outputs(bucket.n_logit_rows);
  results = {place(results.logits), place(results.greedy_ids)};
  queue.begin();
  model_.forward(queue, lay_out(bucket, limits, &state).state, {k_pages, v_pages}, results);
}

std::vector<OpRecord> Engine::plan(int64_t n_tokens, int64_t n_past) const {
  Arena arena(device_);
  PlanQueue queue(device_, table_, arena);
  plan_step(queue, {n_tokens, 1, 1}, KvPool::pages_of(n_past + n_tokens));
  std::vector<OpRecord> records = queue.records();
  for (OpRecord& record : records) record.outputs.clear();  // their memory was never there
  return records;
}

void Engine::check_memory() const {
  const int64_t weight_bytes = model_.facts().weight_bytes;
  const int64_t needed = weight_bytes + kv_bytes_ + step_bytes_;
  const int64_t available = device_.caps().memory_bytes;
  if (available == 0 || needed <= available) return;
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fail(
      ErrorKind::kOutOfMemory, device_.caps().name,
      "{:.0f} MiB are needed (weights {:.0f}, KV cache {:.0f}, step {:.0f}), the device has {:.0f} "
      "MiB; a smaller --ctx, fewer sessions or --kv-type f16 need less",
      mib(needed), mib(weight_bytes), mib(kv_bytes_), mib(step_bytes_), mib(available));
}

void Engine::step(std::span<const StepRequest> requests, bool want_logits, StepResult& result) {
  const std::lock_guard lock(mutex_);
  try {
    build_batch(requests);
    run_batch();
    read_results(want_logits, result);
  } catch (...) {
    for (const StepRequest& request : requests) {
      kv_pool_->truncate(request.sequence->pages_, request.sequence->length());
    }
    throw;
  }
  // The step is through: only now do its tokens count.
  for (const StepRequest& request : requests) {
    std::vector<uint32_t>& tokens = request.sequence->tokens_;
    tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  }
}

void Engine::build_batch(std::span<const StepRequest> requests) {
  int64_t n_tokens = 0, n_rows = 0;
  for (const StepRequest& request : requests) {
    n_tokens += static_cast<int64_t>(request.tokens.size());
    n_rows += rows_of(request);
    for (const uint32_t token : request.tokens) {
      if (static_cast<int64_t>(token) < model_.facts().vocab_size) continue;
      fail(ErrorKind::kInvalidArgument, "tokens", "expected ids below {}, got {}",
           model_.facts().vocab_size, token);
    }
  }
  if (n_tokens < 1 || n_tokens > limits_.max_tokens || n_rows > limits_.max_logit_rows ||
      static_cast<int64_t>(requests.size()) > limits_.max_sequences) {
    fail(ErrorKind::kInvalidArgument, "step",
         "expected 1 to {} tokens, up to {} rows of logits, up to {} sequences; got {}, {}, {}",
         limits_.max_tokens, limits_.max_logit_rows, limits_.max_sequences, n_tokens, n_rows,
         requests.size());
  }
  batch_->clear();
  for (const StepRequest& request : requests) {
    Sequence& sequence = *request.sequence;
    const int64_t new_length = sequence.length() + static_cast<int64_t>(request.tokens.size());
    if (new_length > options_.context) {
      fail(ErrorKind::kOutOfMemory, "context",
           "{} tokens do not fit into the context of {}; --ctx "
           "sets its size",
           new_length, options_.context);
    }
    kv_pool_->reserve(sequence.pages_, sequence.length(), new_length);
    batch_->add(request.tokens, sequence.length(), sequence.pages_, rows_of(request));
  }
}

void Engine::run_batch() {
  const Bucket bucket = trace_ ? batch_->exact_bucket() : batch_->bucket();
  if (trace_) {
    trace_->begin_step(*batch_);
    queue_->write(*state_buffer_, 0, batch_->pack(bucket));
    record(bucket);  // runs op by op
    return;
  }
  const Step& step = recorded_step(bucket);
  queue_->write(*state_buffer_, 0, batch_->pack(bucket));
  queue_->submit(step);
  queue_->wait().value();
}

const Step& Engine::recorded_step(const Bucket& bucket) {
  for (const RecordedStep& recorded : recorded_steps_) {
    if (recorded.bucket == bucket) return *recorded.step;
  }
  recorded_steps_.push_back({bucket, record(bucket)});
  return *recorded_steps_.back().step;
}

std::unique_ptr<Step> Engine::record(const Bucket& bucket) {
  queue_->begin();
  model_.forward(*queue_, lay_out(bucket, limits_, state_buffer_.get()).state, kv_pool_->view(),
                 outputs(bucket.n_logit_rows));
  return queue_->end();
}

StepOutputs Engine::outputs(int64_t n_logit_rows) const {
  return {.logits = Tensor::dense(DType::kF32, {n_logit_rows, model_.facts().vocab_size},
                                  logits_buffer_.get()),
          .greedy_ids = Tensor::dense(DType::kU32, {n_logit_rows}, ids_buffer_.get())};
}

void Engine::read_results(bool want_logits, StepResult& result) const {
  const auto n_rows = static_cast<size_t>(batch_->n_logit_rows());
  const auto vocab_size = static_cast<size_t>(model_.facts().vocab_size);
  result.greedy_ids.resize(n_rows);
  result.logits.resize(want_logits ? n_rows * vocab_size : 0);
  device_.read(*ids_buffer_, 0, std::as_writable_bytes(std::span(result.greedy_ids)));
  device_.read(*logits_buffer_, 0, std::as_writable_bytes(std::span(result.logits)));
}

}  // namespace tessera
