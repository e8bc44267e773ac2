#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/model_impl.hpp"
#include "api/stop_matcher.hpp"
#include "base/utf8.hpp"
#include "engine/engine.hpp"
#include "engine/sampler.hpp"

namespace tessera {

/// Throws Error{kInvalidArgument} for a prompt that is empty, longer than the context or has ids
/// outside the vocabulary.
void check_prompt(const Model::Impl& model, std::span<const uint32_t> prompt);

/// One prompt on its way to its answer. `run()` takes several along in shared steps.
class Generating {
 public:
  /// Checks options and prompt, and reuses what `sequence` has of it. Throws
  /// Error{kInvalidArgument}.
  Generating(const Model::Impl& model, Sequence& sequence, std::span<const uint32_t> prompt,
             const GenerateOptions& options, const TextCallback& on_text);

  /// Runs all of them to their end.
  static void run(const Model::Impl& model, std::span<Generating> all);

  Generation& result() { return result_; }

 private:
  /// A step on its way, and whose prompts it takes along.
  struct Flight {
    StartedStep step;
    std::vector<StepRequest> requests;
    std::vector<Generating*> takers;
  };

  /// Starts a step with all that have something to run; false when none has.
  static bool start_next(const Model::Impl& model, std::span<Generating> all, Flight& flight);
  /// Starts the step behind `flight` before its tokens are known, where the device computes beside
  /// us and nothing but those tokens is missing.
  static void start_ahead(const Model::Impl& model, std::span<Generating> all, const Flight& flight,
                          Flight& ahead);
  bool decoding() const { return n_prefilled_ == result_.prompt_ids.size(); }
  /// What to run next, at most `budget` tokens.
  StepRequest next_request(int64_t budget);
  /// Whether the greedy id of `request` will be wanted, and a step behind it, unless it ends the
  /// text.
  bool goes_on_from(const StepRequest& request) const;
  /// Takes what a step gave: `logits` and `greedy_id` of the last token if it had rows.
  void took(const StepRequest& request, double step_ms, uint32_t greedy_id,
            std::span<const float> logits);
  void accept(uint32_t id);
  void emit(std::string text);
  void finish(FinishReason reason);

  const Model::Impl& model_;
  Sequence* sequence_;
  const GenerateOptions& options_;
  const TextCallback& on_text_;
  uint64_t seed_;
  Sampler sampler_;
  StopMatcher stops_;
  Utf8Stream characters_;
  Generation result_;
  size_t n_prefilled_ = 0;
  bool done_ = false;
};

}  // namespace tessera
