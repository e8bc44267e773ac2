#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Which two values of a head form pair i of the n = rotary_dim / 2 pairs.
enum class RopePairing : uint8_t {
  kInterleaved,  ///< (2i, 2i + 1)
  kHalfSplit,    ///< (i, i + n)
};

enum class RopeScalingKind : uint8_t {
  kNone,
  kLinear,  ///< all frequencies divided by `factor`
  kLlama3,  ///< low frequencies divided by `factor`, blended between the two wavelengths
};

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;
  double low_freq_factor = 1;  ///< llama3
  double high_freq_factor = 4;
  double original_context = 8192;
};

struct RopeSpec {
  int rotary_dim = 0;  ///< even, at most head_dim; the rest of a head passes through
  double base = 10000;
  RopeScaling scaling;
};

/// Angle per position of each pair: base^(-2i / rotary_dim), scaled; f64 [rotary_dim / 2].
/// Source: Su et al. 2021 (RoFormer); Llama 3.1's published scaling of frequencies.
std::vector<double> rope_frequencies(const RopeSpec& spec);

/// cos and sin of position * frequency, computed in f64: f32 [n_positions, rotary_dim / 2, 2]
/// written to `target`.
void rope_rotation(std::span<const double> frequencies, std::span<const uint32_t> positions,
                   std::span<float> target);

}  // namespace tessera
