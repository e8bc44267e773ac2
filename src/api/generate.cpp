#include "api/generate.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace tessera {
namespace {

uint64_t new_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

bool cancelled(const GenerateOptions& options) {
  return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
}

}  // namespace

void check_prompt(const Model::Impl& model, std::span<const uint32_t> prompt) {
  const int64_t context = model.engine->context();
  if (prompt.empty()) fail(ErrorKind::kInvalidArgument, "prompt", "expected tokens, got none");
  if (static_cast<int64_t>(prompt.size()) > context) {
    fail(
        ErrorKind::kInvalidArgument, "prompt",
        "{} tokens do not fit into the context of {}; --ctx sets its size, the model's limit is {}",
        prompt.size(), context, model.info.trained_context);
  }
  for (const uint32_t id : prompt) {
    if (static_cast<int64_t>(id) < model.info.vocab_size) continue;
    fail(ErrorKind::kInvalidArgument, "prompt", "expected token ids below {}, got {}",
         model.info.vocab_size, id);
  }
}

Generating::Generating(const Model::Impl& model, Sequence& sequence,
                       std::span<const uint32_t> prompt, const GenerateOptions& options,
                       const TextCallback& on_text)
    : model_(model),
      sequence_(&sequence),
      options_(options),
      on_text_(on_text),
      seed_(options.seed ? *options.seed : new_seed()),
      sampler_({.temperature = options.temperature,
                .top_k = options.top_k,
                .top_p = options.top_p,
                .min_p = options.min_p},
               seed_),
      stops_(options.stop) {
  if (options.max_tokens < 0) {
    fail(ErrorKind::kInvalidArgument, "max_tokens", "expected a number from 0, got {}",
         options.max_tokens);
  }
  check_prompt(model, prompt);
  result_.seed = seed_;
  result_.prompt_ids.assign(prompt.begin(), prompt.end());
  // The last token runs in any case: its logits are what the answer begins with.
  const auto n_reusable = static_cast<int64_t>(prompt.size()) - 1;
  n_prefilled_ = static_cast<size_t>(sequence.reuse_prefix(prompt, n_reusable));
  result_.timings.reused_tokens = static_cast<int64_t>(n_prefilled_);
  result_.timings.prefill_tokens = static_cast<int64_t>(prompt.size() - n_prefilled_);
}

void Generating::run(const Model::Impl& model, std::span<Generating> all) {
  Flight flight, ahead;
  StepResult result;
  const auto vocab_size = static_cast<size_t>(model.info.vocab_size);
  int64_t begin_ns = now_ns();
  while (flight.step || start_next(model, all, flight)) {
    start_ahead(model, all, flight, ahead);
    flight.step.finish(result);
    const int64_t end_ns = now_ns();
    const double step_ms = static_cast<double>(end_ns - begin_ns) * 1e-6;
    begin_ns = end_ns;
    size_t row = 0;
    for (size_t i = 0; i < flight.requests.size(); ++i) {
      Generating& taker = *flight.takers[i];
      const bool has_row = flight.requests[i].rows != LogitRows::kNone;
      const uint32_t greedy_id = has_row ? result.greedy_ids[row] : 0;
      const auto logits = has_row && !result.logits.empty()
                              ? std::span(result.logits).subspan(row * vocab_size, vocab_size)
                              : std::span<const float>{};
      if (!taker.done_ && cancelled(taker.options_)) taker.finish(FinishReason::kCancelled);
      if (!taker.done_) taker.took(flight.requests[i], step_ms, greedy_id, logits);
      row += has_row;
    }
    std::swap(flight, ahead);
  }
}

bool Generating::start_next(const Model::Impl& model, std::span<Generating> all, Flight& flight) {
  flight.requests.clear();
  flight.takers.clear();
  int64_t budget = model.engine->max_step_tokens();
  bool want_logits = false;
  // Whoever decodes goes first: a long prompt must not hold up the others.
  for (const bool decoding : {true, false}) {
    for (Generating& one : all) {
      if (!one.done_ && cancelled(one.options_)) one.finish(FinishReason::kCancelled);
      if (one.done_ || one.decoding() != decoding || budget == 0) continue;
      flight.requests.push_back(one.next_request(budget));
      flight.takers.push_back(&one);
      budget -= flight.requests.back().n_tokens();
      want_logits |= flight.requests.back().rows != LogitRows::kNone && !one.sampler_.greedy();
    }
  }
  if (flight.requests.empty()) return false;
  flight.step = model.engine->start(flight.requests, want_logits);
  return true;
}

void Generating::start_ahead(const Model::Impl& model, std::span<Generating> all,
                             const Flight& flight, Flight& ahead) {
  if (!model.device->caps().asynchronous) return;
  ahead.requests.clear();
  ahead.takers.clear();
  for (size_t i = 0; i < flight.requests.size(); ++i) {
    Generating& taker = *flight.takers[i];
    if (taker.done_ || !taker.goes_on_from(flight.requests[i])) continue;
    ahead.requests.push_back({taker.sequence_, {}, LogitRows::kLast});
    ahead.takers.push_back(&taker);
  }
  // Who needs a look at the logits first, or has more of a prompt to run, must not be left behind.
  const auto n_running = static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [](const Generating& one) { return !one.done_; }));
  if (ahead.requests.empty() || ahead.requests.size() != n_running) return;
  try {
    ahead.step = model.engine->start(ahead.requests, false);
  } catch (const Error&) {
    // The step in flight is finished first: what it gives must not be lost. If a step behind it is
    // wanted then, start_next() meets the same error and throws it.
  }
}

bool Generating::goes_on_from(const StepRequest& request) const {
  if (request.rows == LogitRows::kNone || !sampler_.greedy() || cancelled(options_)) return false;
  // The step on its way gives one id, the step ahead runs it.
  const auto n_known = static_cast<int64_t>(result_.ids.size()) + 1;
  const int64_t length = sequence_->length() + request.n_tokens();
  return n_known < options_.max_tokens && length < model_.engine->context();
}

StepRequest Generating::next_request(int64_t budget) {
  if (decoding()) return {sequence_, std::span(result_.ids).last(1), LogitRows::kLast};
  const std::span<const uint32_t> left = std::span(result_.prompt_ids).subspan(n_prefilled_);
  const auto chunk = left.first(std::min(left.size(), static_cast<size_t>(budget)));
  return {sequence_, chunk, chunk.size() == left.size() ? LogitRows::kLast : LogitRows::kNone};
}

void Generating::took(const StepRequest& request, double step_ms, uint32_t greedy_id,
                      std::span<const float> logits) {
  if (decoding()) {
    result_.timings.decode_ms += step_ms;
    ++result_.timings.decode_tokens;
  } else {
    result_.timings.prefill_ms += step_ms;
    n_prefilled_ += request.tokens.size();
  }
  if (request.rows == LogitRows::kNone) return;
  if (options_.max_tokens == 0) return finish(FinishReason::kLength);
  accept(sampler_.greedy() ? greedy_id : sampler_.sample(logits));
}

void Generating::accept(uint32_t id) {
  if (!options_.ignore_eos && model_.tokenizer->is_end(id)) return finish(FinishReason::kEnd);
  result_.ids.push_back(id);
  emit(stops_.push(
      characters_.push(model_.tokenizer->token_to_bytes(id, {.render_special = true}))));
  if (done_) return;
  if (stops_.stopped()) return finish(FinishReason::kStop);
  if (static_cast<int64_t>(result_.ids.size()) == options_.max_tokens) {
    return finish(FinishReason::kLength);
  }
  if (sequence_->length() < model_.engine->context()) return;
  if (options_.when_full == WhenFull::kError) {
    fail(ErrorKind::kOutOfMemory, "context",
         "all {} tokens of the context are used; --ctx sets its size, the model's limit is {}",
         model_.engine->context(), model_.info.trained_context);
  }
  finish(FinishReason::kContext);
}

void Generating::emit(std::string text) {
  if (text.empty()) return;
  result_.text += text;
  if (on_text_ && !on_text_(text)) {
    done_ = true;
    result_.finish_reason = FinishReason::kCancelled;
  }
}

void Generating::finish(FinishReason reason) {
  if (!stops_.stopped()) {
    std::string rest = stops_.push(characters_.flush());
    rest += stops_.flush();
    emit(std::move(rest));
  }
  done_ = true;
  result_.finish_reason = reason;
}

}  // namespace tessera
