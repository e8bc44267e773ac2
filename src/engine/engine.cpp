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
  return request.n_tokens();
}

}  // namespace

/// A started step.
struct StartedStep::Flight {
  struct Part {
    Sequence* sequence;
    size_t n_tokens;
    bool follows;  // its one token is the sequence's last_id_ by the time that the step lands
    int64_t row;   // of the results, the last of its rows; -1: none
  };
  uint64_t number = 0;
  std::vector<Part> parts;
  std::vector<uint32_t> tokens;  // of all parts
  int64_t n_rows = 0;
  bool want_logits = false;
  bool landed = false;     // the device is done with it
  bool committed = false;  // its sequences know of it
  StepResult result;
  std::optional<Error> error;

  bool shares_sequence(const Flight& other) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      return std::any_of(other.parts.begin(), other.parts.end(),
                         [&](const Part& its) { return its.sequence == part.sequence; });
    });
  }
};

Sequence::Sequence(Engine& engine) : engine_(&engine) {
  // Growing later must not allocate in the middle of decoding.
  tokens_.reserve(static_cast<size_t>(engine.context()));
  pages_.reserve(static_cast<size_t>(KvPool::pages_of(engine.context())));
}

Sequence::Sequence(Sequence&& other) noexcept : engine_(other.engine_) {
  *this = std::move(other);
}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  settle();
  other.settle();
  std::swap(engine_, other.engine_);
  std::swap(tokens_, other.tokens_);
  std::swap(pages_, other.pages_);
  std::swap(last_row_, other.last_row_);
  std::swap(last_id_, other.last_id_);
  return *this;
}

Sequence::~Sequence() {
  settle();
  if (pages_.empty()) return;
  const std::lock_guard lock(engine_->mutex_);
  engine_->kv_pool_->truncate(pages_, 0);
}

void Sequence::settle() const noexcept {
  if (n_in_flight_ == 0) return;
  const std::lock_guard lock(engine_->mutex_);
  engine_->settle(last_flight_);
}

int64_t Sequence::reuse_prefix(std::span<const uint32_t> tokens, int64_t most) {
  settle();
  const size_t limit = std::min(tokens.size(), static_cast<size_t>(most));
  size_t n_common = 0;
  while (n_common < std::min(limit, tokens_.size()) && tokens_[n_common] == tokens[n_common]) {
    ++n_common;
  }
  tokens_.resize(n_common);
  last_row_ = -1;
  const std::lock_guard lock(engine_->mutex_);
  engine_->kv_pool_->truncate(pages_, length());
  return length();
}

Sequence Sequence::fork(int64_t length) const {
  settle();
  TESSERA_DCHECK(length <= this->length());
  Sequence other(*engine_);
  other.tokens_.assign(tokens_.begin(), tokens_.begin() + length);
  const std::lock_guard lock(engine_->mutex_);
  const PageTable shared = engine_->kv_pool_->share(pages_, length);
  other.pages_.assign(shared.begin(), shared.end());
  return other;
}

StartedStep::StartedStep(StartedStep&& other) noexcept
    : engine_(other.engine_), flight_(std::exchange(other.flight_, nullptr)) {}

StartedStep& StartedStep::operator=(StartedStep&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(flight_, other.flight_);
  return *this;
}

StartedStep::~StartedStep() {
  if (flight_ == nullptr) return;
  const std::lock_guard lock(engine_->mutex_);
  engine_->settle(flight_->number);
  engine_->release(*flight_);
}

void StartedStep::finish(StepResult& result) {
  TESSERA_DCHECK(flight_ != nullptr);
  const std::lock_guard lock(engine_->mutex_);
  engine_->settle(flight_->number);
  std::swap(result, flight_->result);
  const std::optional<Error> error = std::exchange(flight_->error, std::nullopt);
  engine_->release(*std::exchange(flight_, nullptr));
  if (error) throw *error;
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
  const Bucket largest = limits_.largest_bucket();
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
      for (const int64_t n_pages : page_bucket_sizes(limits_.max_pages)) {
        plan_step(queue, {n_tokens, limits_.max_sequences, n_rows, n_pages});
        for (const OpRecord& record : queue.records()) {
          if (record.reference) on_reference.emplace(record.op);
        }
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

void Engine::plan_step(PlanQueue& queue, const Bucket& bucket) const {
  const ModelFacts& facts = model_.facts();
  std::vector<std::unique_ptr<StandIn>> places;
  const auto place = [&](Tensor tensor) {
    places.push_back(std::make_unique<StandIn>(device_));
    tensor.buffer = places.back().get();
    return tensor;
  };
  const Tensor pages = Tensor::dense(
      options_.kv_dtype,
      {limits_.max_pages * options_.max_sequences, facts.n_kv_heads, kPageTokens, facts.head_dim});
  std::vector<Tensor> k_pages, v_pages;
  for (int64_t i = 0; i < facts.n_layers; ++i) {
    k_pages.push_back(place(pages));
    v_pages.push_back(place(pages));
  }
  StandIn state(device_);
  StepOutputs results = outputs(bucket.n_logit_rows);
  results = {place(results.logits), place(results.greedy_ids)};
  queue.begin();
  model_.forward(queue, lay_out(bucket, limits_, &state).state, {k_pages, v_pages}, results);
}

std::vector<OpRecord> Engine::plan(int64_t n_tokens, int64_t n_past, Tokens tokens) const {
  Arena arena(device_);
  PlanQueue queue(device_, table_, arena);
  const bool one_each = tokens == Tokens::kOfOneEach;
  const int64_t n_sequences = one_each ? n_tokens : 1;
  plan_step(queue, {n_tokens, n_sequences, n_sequences,
                    KvPool::pages_of(n_past + (one_each ? 1 : n_tokens))});
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

void Engine::observe(OpObserver* observer) {
  const std::lock_guard lock(mutex_);
  TESSERA_DCHECK(!trace_);
  queue_->set_observer(observer);
}

void Engine::step(std::span<const StepRequest> requests, bool want_logits, StepResult& result) {
  start(requests, want_logits).finish(result);
}

StartedStep Engine::start(std::span<const StepRequest> requests, bool want_logits) {
  const std::lock_guard lock(mutex_);
  for (const StepRequest& request : requests) {
    // An id that is not among those of the newest step has to come by way of the host.
    const Sequence& sequence = *request.sequence;
    if (request.tokens.empty() && !follows_on_device(sequence)) settle(sequence.last_flight_);
  }
  check_requests(requests);
  try {
    build_batch(requests);
    run_batch(requests, want_logits);
  } catch (...) {
    for (const StepRequest& request : requests) {
      Sequence& sequence = *request.sequence;
      kv_pool_->truncate(sequence.pages_, sequence.length() + sequence.n_in_flight_);
    }
    throw;
  }
  Flight& flight = take_off(requests, want_logits);
  if (!device_.caps().asynchronous || trace_) land(flight);
  return {*this, flight};
}

void Engine::check_requests(std::span<const StepRequest> requests) const {
  int64_t n_tokens = 0, n_rows = 0;
  for (const StepRequest& request : requests) {
    n_tokens += request.n_tokens();
    n_rows += rows_of(request);
    if (request.tokens.empty() && request.sequence->last_row_ < 0) {
      fail(ErrorKind::kInvalidArgument, "tokens",
           "expected some, or a sequence whose last step had a row of logits to go on from");
    }
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
}

/// Whether the greedy id of the sequence's last step is on the device alone, among the ids of the
/// newest step. Of a step that has landed the host has it, or its error.
bool Engine::follows_on_device(const Sequence& sequence) const {
  return !flights_.empty() && !flights_.back().landed &&
         flights_.back().number == sequence.last_flight_;
}

void Engine::build_batch(std::span<const StepRequest> requests) {
  batch_->clear();
  for (const StepRequest& request : requests) {
    Sequence& sequence = *request.sequence;
    const int64_t length = sequence.length() + sequence.n_in_flight_;
    const int64_t new_length = length + request.n_tokens();
    if (new_length > options_.context) {
      fail(ErrorKind::kOutOfMemory, "context",
           "{} tokens do not fit into the context of {}; --ctx "
           "sets its size",
           new_length, options_.context);
    }
    kv_pool_->reserve(sequence.pages_, length, new_length);
    // An id that is still on the device is copied over this one, see run_batch().
    const auto tokens =
        request.tokens.empty() ? std::span<const uint32_t>(&sequence.last_id_, 1) : request.tokens;
    batch_->add(tokens, length, sequence.pages_, rows_of(request));
  }
}

void Engine::run_batch(std::span<const StepRequest> requests, bool want_logits) {
  const Bucket bucket = trace_ ? batch_->exact_bucket() : batch_->bucket();
  if (trace_) trace_->begin_step(*batch_);
  queue_->write(*state_buffer_, 0, batch_->pack(bucket));
  // An observer has run it op by op.
  const std::unique_ptr<Step> observed = queue_->observer() ? record(bucket) : nullptr;
  const Step& step = observed ? *observed : recorded_step(bucket);

  const StepOutputs results = outputs(batch_->n_logit_rows());
  const Tensor token_ids = lay_out(bucket, limits_, state_buffer_.get()).state.token_ids;
  int64_t i_token = 0;
  for (const StepRequest& request : requests) {
    if (request.tokens.empty() && follows_on_device(*request.sequence)) {
      const Tensor newest_ids = outputs(limits_.max_logit_rows).greedy_ids;
      queue_->copy(token_ids.slice(i_token, 1), newest_ids.slice(request.sequence->last_row_, 1));
    }
    i_token += request.n_tokens();
  }
  if (batch_->n_logit_rows() > 0) {
    queue_->request(results.greedy_ids);
    if (want_logits) queue_->request(results.logits);
  }
  queue_->submit(step);
}

/// Notes what the submitted step will give.
Engine::Flight& Engine::take_off(std::span<const StepRequest> requests, bool want_logits) {
  if (free_flights_.empty()) free_flights_.emplace_back();
  flights_.splice(flights_.end(), free_flights_, free_flights_.begin());
  Flight& flight = flights_.back();
  flight.number = ++n_started_;
  flight.parts.clear();
  flight.tokens.clear();
  flight.n_rows = 0;
  flight.want_logits = want_logits;
  flight.landed = flight.committed = false;
  for (const StepRequest& request : requests) {
    Sequence& sequence = *request.sequence;
    flight.n_rows += rows_of(request);
    const int64_t row = rows_of(request) > 0 ? flight.n_rows - 1 : -1;
    const auto n_tokens = static_cast<size_t>(request.n_tokens());
    flight.parts.push_back({&sequence, n_tokens, request.tokens.empty(), row});
    flight.tokens.insert(flight.tokens.end(), request.tokens.begin(), request.tokens.end());
    sequence.n_in_flight_ += request.n_tokens();
    sequence.last_flight_ = flight.number;
    sequence.last_row_ = row;
  }
  return flight;
}

/// Waits for the step of that number and tells its sequences, which are the caller's. A step that
/// was released is settled.
void Engine::settle(uint64_t number) {
  for (Flight& flight : flights_) {
    if (flight.number > number) return;
    if (!flight.landed) land(flight);
    if (flight.number == number) commit(flight);
  }
}

/// Waits for the oldest step that has not landed, which may be another thread's: so its sequences
/// are left alone.
void Engine::land(Flight& flight) {
  const Status status = receive(flight);
  if (status.ok()) return;
  // What was started behind it goes on from tokens that do not count.
  for (Flight& lost : flights_) {
    if (lost.number < flight.number) continue;
    if (!lost.landed) (void)receive(lost);
    lost.error = status.error();
  }
}

Status Engine::receive(Flight& flight) {
  StepResult& result = flight.result;
  const auto n_rows = static_cast<size_t>(flight.n_rows);
  flight.landed = true;
  result.greedy_ids.resize(n_rows);
  result.logits.resize(flight.want_logits ? n_rows * static_cast<size_t>(model_.facts().vocab_size)
                                          : 0);
  if (n_rows == 0) return queue_->wait();
  Status status = queue_->receive(std::as_writable_bytes(std::span(result.greedy_ids)));
  if (!flight.want_logits) return status;
  Status logits_status = queue_->receive(std::as_writable_bytes(std::span(result.logits)));
  return status.ok() ? std::move(logits_status) : std::move(status);
}

/// The step is through: only now do its tokens count. Earlier steps of its sequences first.
void Engine::commit(Flight& flight) {
  if (flight.committed) return;
  flight.committed = true;
  for (Flight& earlier : flights_) {
    if (earlier.number >= flight.number) break;
    if (earlier.shares_sequence(flight)) commit(earlier);
  }
  auto token = flight.tokens.begin();
  for (const Flight::Part& part : flight.parts) {
    Sequence& sequence = *part.sequence;
    const auto n = static_cast<int64_t>(part.n_tokens);
    sequence.n_in_flight_ -= n;
    if (flight.error) {
      sequence.last_row_ = -1;
      kv_pool_->truncate(sequence.pages_, sequence.length());
      continue;
    }
    if (part.follows) {
      sequence.tokens_.push_back(sequence.last_id_);
    } else {
      sequence.tokens_.insert(sequence.tokens_.end(), token, token + n);
      token += n;
    }
    if (part.row >= 0) sequence.last_id_ = flight.result.greedy_ids[static_cast<size_t>(part.row)];
  }
}

void Engine::release(Flight& flight) {
  const auto place = std::find_if(flights_.begin(), flights_.end(),
                                  [&](const Flight& other) { return &other == &flight; });
  free_flights_.splice(free_flights_.begin(), flights_, place);
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

}  // namespace tessera
