#include "ops/rope/rotation.hpp"

#include <cmath>
#include <numbers>

#include "base/error.hpp"

namespace tessera {
namespace {

template <typename... Parts>
void require(bool condition, const char* what, fmt::format_string<Parts...> format,
             Parts&&... parts) {
  if (!condition) {
    fail(ErrorKind::kInvalidArgument, what, format, std::forward<Parts>(parts)...);
  }
}

bool is_positive(double value) {
  return value > 0 && std::isfinite(value);
}

void validate(const RopeSpec& spec) {
  const RopeScaling& scaling = spec.scaling;
  require(spec.rotary_dim >= 2 && spec.rotary_dim % 2 == 0, "rope.rotary_dim",
          "expected an even number >= 2, got {}; it is head_dim unless the model rotates a part "
          "of each head",
          spec.rotary_dim);
  require(is_positive(spec.base), "rope.base",
          "expected a finite value > 0, got {}; take rope_theta of the model, often 10000",
          spec.base);
  if (scaling.kind == RopeScalingKind::kNone) return;
  require(is_positive(scaling.factor), "rope.scaling.factor",
          "expected a finite value > 0, got {}; take it from the model's rope scaling",
          scaling.factor);
  if (scaling.kind == RopeScalingKind::kLinear) return;
  require(is_positive(scaling.low_freq_factor) && is_positive(scaling.high_freq_factor) &&
              scaling.low_freq_factor < scaling.high_freq_factor,
          "rope.scaling",
          "expected 0 < low_freq_factor < high_freq_factor, got {} and {}; Llama 3.1 has 1 and 4",
          scaling.low_freq_factor, scaling.high_freq_factor);
  require(is_positive(scaling.original_context), "rope.scaling.original_context",
          "expected the tokens of context that the model was first trained for, got {}; Llama 3.1 "
          "has 8192",
          scaling.original_context);
}

/// Llama 3.1: wavelengths beyond original_context / low_freq_factor are stretched by `factor`,
/// those below original_context / high_freq_factor are kept, and between the two the frequency is
/// blended linearly in turns per context.
double llama3_scaled(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double turns = scaling.original_context / wavelength;
  if (turns > scaling.high_freq_factor) return frequency;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeSpec& spec) {
  validate(spec);
  std::vector<double> frequencies;
  for (int i = 0; i < spec.rotary_dim / 2; ++i) {
    const double frequency = std::pow(spec.base, -2.0 * i / spec.rotary_dim);
    switch (spec.scaling.kind) {
      case RopeScalingKind::kNone:
        frequencies.push_back(frequency);
        break;
      case RopeScalingKind::kLinear:
        frequencies.push_back(frequency / spec.scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequencies.push_back(llama3_scaled(frequency, spec.scaling));
        break;
    }
  }
  return frequencies;
}

void rope_rotation(std::span<const double> frequencies, std::span<const uint32_t> positions,
                   std::span<float> target) {
  const size_t expected = positions.size() * frequencies.size() * 2;
  require(target.size() == expected, "rope_rotation",
          "expected room for {} values ({} positions, {} pairs, cos and sin), got {}; make the "
          "target as long",
          expected, positions.size(), frequencies.size(), target.size());
  size_t i = 0;
  for (const uint32_t position : positions) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      target[i++] = static_cast<float>(std::cos(angle));
      target[i++] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace tessera
