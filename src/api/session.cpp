#include <algorithm>
#include <cmath>
#include <utility>

#include "api/generate.hpp"
#include "api/model_impl.hpp"
#include "base/error.hpp"

namespace tessera {
inline namespace v1 {
namespace {

/// Natural-log likelihood of `id`: logit - log(sum(exp)), in f64.
double log_likelihood(std::span<const float> logits, uint32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[id]) - largest - std::log(sum);
}

/// What all of them begin with.
std::span<const uint32_t> common_prefix(std::span<const std::vector<uint32_t>> prompts) {
  std::span<const uint32_t> common = prompts[0];
  for (const std::vector<uint32_t>& prompt : prompts.subspan(1)) {
    const auto end =
        std::mismatch(common.begin(), common.end(), prompt.begin(), prompt.end()).first;
    common = common.first(static_cast<size_t>(end - common.begin()));
  }
  return common;
}

}  // namespace

struct Session::Impl {
  explicit Impl(const std::shared_ptr<Model::Impl>& shared)
      : model(shared), sequence(*shared->engine) {}

  /// Runs `ids` behind what the sequence holds, in chunks that fit; `take(logits)` is given the
  /// logits of every token in turn, one row each.
  template <typename Take>
  void run_all_rows(std::span<const uint32_t> ids, Take take) {
    Engine& engine = *model->engine;
    const auto vocab_size = static_cast<size_t>(model->info.vocab_size);
    const auto most = static_cast<size_t>(engine.max_logit_rows());
    while (!ids.empty()) {
      const auto chunk = ids.first(std::min(ids.size(), most));
      const StepRequest request = {&sequence, chunk, LogitRows::kAll};
      engine.step({&request, 1}, true, step);
      for (size_t row = 0; row < chunk.size(); ++row) {
        take(std::span<const float>(step.logits).subspan(row * vocab_size, vocab_size));
      }
      ids = ids.subspan(chunk.size());
    }
  }

  /// The logits behind the last of `ids`.
  std::vector<float> run_last_row(std::span<const uint32_t> ids) {
    const auto n_reusable = static_cast<int64_t>(ids.size()) - 1;
    ids = ids.subspan(static_cast<size_t>(sequence.reuse_prefix(ids, n_reusable)));
    const auto most = static_cast<size_t>(model->engine->max_step_tokens());
    while (!ids.empty()) {
      const auto chunk = ids.first(std::min(ids.size(), most));
      ids = ids.subspan(chunk.size());
      const LogitRows rows = ids.empty() ? LogitRows::kLast : LogitRows::kNone;
      const StepRequest request = {&sequence, chunk, rows};
      model->engine->step({&request, 1}, ids.empty(), step);
    }
    return step.logits;
  }

  std::shared_ptr<Model::Impl> model;
  Sequence sequence;  // dies before the engine that it belongs to
  StepResult step;
};

Session::Session(const Model& model) : impl_(std::make_unique<Impl>(model.impl())) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Generation Session::generate(std::string_view prompt, const GenerateOptions& options,
                             const TextCallback& on_text) {
  return generate(impl_->model->prompt_ids(prompt), options, on_text);
}

Generation Session::generate(std::span<const uint32_t> prompt_ids, const GenerateOptions& options,
                             const TextCallback& on_text) {
  Generating generating(*impl_->model, impl_->sequence, prompt_ids, options, on_text);
  Generating::run(*impl_->model, {&generating, 1});
  return std::move(generating.result());
}

std::vector<float> Session::logits(std::span<const uint32_t> ids, bool all_positions) {
  check_prompt(*impl_->model, ids);
  if (!all_positions) return impl_->run_last_row(ids);
  std::vector<float> all;
  all.reserve(ids.size() * static_cast<size_t>(impl_->model->info.vocab_size));
  impl_->sequence.reuse_prefix(ids, 0);
  impl_->run_all_rows(ids, [&](std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

std::vector<float> Session::log_likelihoods(std::span<const uint32_t> ids) {
  check_prompt(*impl_->model, ids);
  std::vector<float> likelihoods;
  impl_->sequence.reuse_prefix(ids, 0);
  impl_->run_all_rows(ids.first(ids.size() - 1), [&](std::span<const float> logits) {
    const uint32_t next = ids[likelihoods.size() + 1];
    likelihoods.push_back(static_cast<float>(log_likelihood(logits, next)));
  });
  return likelihoods;
}

std::vector<Generation> generate_batch(const Model& model,
                                       std::span<const std::vector<uint32_t>> prompts,
                                       const GenerateOptions& options) {
  Engine& engine = *model.impl()->engine;
  if (static_cast<int64_t>(prompts.size()) > engine.max_sequences()) {
    fail(ErrorKind::kInvalidArgument, "generate_batch",
         "{} prompts, but the model was loaded for {} sessions (LoadOptions::max_sessions)",
         prompts.size(), engine.max_sequences());
  }
  const Model::Impl& impl = *model.impl();
  for (const std::vector<uint32_t>& prompt : prompts) check_prompt(impl, prompt);
  std::vector<Generation> results;
  if (prompts.empty()) return results;

  // The beginning that all prompts share runs once; the others share its pages.
  const TextCallback no_callback;
  std::vector<Sequence> sequences;
  sequences.reserve(prompts.size());
  sequences.emplace_back(engine);
  const std::span<const uint32_t> common = common_prefix(prompts);
  if (prompts.size() > 1 && !common.empty()) {
    const GenerateOptions prefill = {.max_tokens = 0, .cancel = options.cancel};
    Generating first(impl, sequences[0], common, prefill, no_callback);
    Generating::run(impl, {&first, 1});
  }
  while (sequences.size() < prompts.size()) {
    sequences.push_back(sequences[0].fork(sequences[0].length()));
  }
  std::vector<Generating> generating;
  generating.reserve(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    generating.emplace_back(impl, sequences[i], prompts[i], options, no_callback);
  }
  Generating::run(impl, generating);
  for (Generating& one : generating) results.push_back(std::move(one.result()));
  return results;
}

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEnd:
      return "end";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kCancelled:
      break;
  }
  return "cancelled";
}

}  // namespace v1
}  // namespace tessera
