#include "engine/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace tessera {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void validate(const SamplerOptions& options) {
  const auto require = [](bool holds, const char* name, const char* range, auto value) {
    if (!holds) fail(ErrorKind::kInvalidArgument, name, "expected {}, got {}", range, value);
  };
  require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature",
          "a number from 0", options.temperature);
  require(options.top_k >= 0, "top_k", "a number from 0 (off)", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "top_p", "a number above 0, up to 1 (off)",
          options.top_p);
  require(options.min_p >= 0 && options.min_p <= 1, "min_p", "a number from 0 (off) to 1",
          options.min_p);
}

Sampler::Sampler(const SamplerOptions& options, uint64_t seed) : options_(options), random_(seed) {
  validate(options);
}

uint32_t Sampler::sample(std::span<const float> logits) {
  keep_top_k(logits);
  if (candidates_.empty()) return 0;  // nothing but NaN
  // Infinite logits have no softmax: the likeliest is certain.
  if (greedy() || !std::isfinite(candidates_.front().logit)) return candidates_.front().id;
  weigh();
  keep_top_p();
  return draw();
}

/// The k best, best first.
void Sampler::keep_top_k(std::span<const float> logits) {
  candidates_.clear();
  const size_t k = greedy()             ? 1
                   : options_.top_k > 0 ? static_cast<size_t>(options_.top_k)
                                        : logits.size();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate = {logits[i], static_cast<uint32_t>(i), 0};
    if (std::isnan(candidate.logit)) continue;
    if (candidates_.size() < k) {
      candidates_.push_back(candidate);
      if (k < logits.size()) std::push_heap(candidates_.begin(), candidates_.end(), better);
    } else if (better(candidate, candidates_.front())) {  // the front is the worst one kept
      std::pop_heap(candidates_.begin(), candidates_.end(), better);
      candidates_.back() = candidate;
      std::push_heap(candidates_.begin(), candidates_.end(), better);
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
}

/// Softmax without its sum, then min-p.
void Sampler::weigh() {
  const double largest = candidates_.front().logit;
  size_t n_kept = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.logit - largest) / options_.temperature);
    if (candidate.weight < options_.min_p) break;
    ++n_kept;
  }
  candidates_.resize(n_kept);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double sum = 0;
  size_t n_kept = 0;
  while (n_kept < candidates_.size() && sum < options_.top_p * total) {
    sum += candidates_[n_kept++].weight;
  }
  candidates_.resize(n_kept);
}

uint32_t Sampler::draw() {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = random_.next_unit() * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;  // rounding of the sums
}

}  // namespace tessera
