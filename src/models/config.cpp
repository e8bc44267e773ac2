#include "models/config.hpp"

#include <cmath>

#include "base/error.hpp"

namespace tessera {

void validate(const LlamaConfig& config, const std::string& where) {
  const auto key = [&](const char* name) { return config.architecture + "." + name; };
  if (config.n_kv_heads > config.n_heads || config.n_heads % config.n_kv_heads != 0) {
    fail(ErrorKind::kInvalidFile, where, "{} is {}, expected a divisor of {} = {}",
         key("attention.head_count_kv"), config.n_kv_heads, key("attention.head_count"),
         config.n_heads);
  }
  if (config.head_dim % 2 != 0) {
    fail(ErrorKind::kInvalidFile, where, "heads have {} values, expected an even number",
         config.head_dim);
  }
  if (config.rope.rotary_dim % 2 != 0 || config.rope.rotary_dim > config.head_dim) {
    fail(ErrorKind::kInvalidFile, where, "{} is {}, expected an even number up to {}",
         key("rope.dimension_count"), config.rope.rotary_dim, config.head_dim);
  }
  const auto n_pairs = static_cast<size_t>(config.rope.rotary_dim / 2);
  if (!config.rope_factors.empty() && config.rope_factors.size() != n_pairs) {
    fail(ErrorKind::kInvalidFile, where, "rope_freqs.weight has {} values, expected {}",
         config.rope_factors.size(), n_pairs);
  }
  for (const float factor : config.rope_factors) {
    if (!std::isfinite(factor) || factor <= 0) {
      fail(ErrorKind::kInvalidFile, where, "rope_freqs.weight holds {}, expected values above 0",
           factor);
    }
  }
}

std::vector<double> rotary_frequencies(const LlamaConfig& config) {
  std::vector<double> frequencies = rope_frequencies(config.rope);
  for (size_t i = 0; i < config.rope_factors.size(); ++i) {
    frequencies[i] /= static_cast<double>(config.rope_factors[i]);
  }
  return frequencies;
}

}  // namespace tessera
