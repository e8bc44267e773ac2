#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Random numbers that depend on the seed alone, on every platform: draw i (from 1) is splitmix64's
/// mix of seed + i * 0x9E3779B97F4A7C15 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// Uniform in [0, 1): the upper 53 bits of a draw.
  double next_unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

/// The policy that turns logits into a token. Off-values: temperature 0 is pure argmax (nothing
/// else counts), top_k 0, top_p 1, min_p 0.
struct SamplerOptions {
  float temperature = 0;
  int top_k = 0;
  float top_p = 1;
  float min_p = 0;
};

/// Throws Error{kInvalidArgument} naming the option that is out of range.
void validate(const SamplerOptions& options);

/// Draws tokens. In this order:
///   1. top-k: the k largest logits, lower ids first among equals;
///   2. softmax at the temperature, in f64;
///   3. min-p: probabilities of at least min_p times the largest;
///   4. top-p: of what is left, renormalised, the fewest largest that sum up to top_p;
///   5. one draw, in falling order of probability.
/// NaN is never drawn.
class Sampler {
 public:
  Sampler(const SamplerOptions& options, uint64_t seed);

  /// True when argmax is all that it does.
  bool greedy() const { return options_.temperature == 0; }
  uint32_t sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    uint32_t id;
    double weight;  // unnormalised probability; the largest is 1
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  void keep_top_k(std::span<const float> logits);
  void weigh();
  void keep_top_p();
  uint32_t draw();

  SamplerOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;
};

}  // namespace tessera
