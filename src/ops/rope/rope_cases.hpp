#pragma once

#include <cmath>

#include "ops/cases.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera {

/// Angles as cosine and sine, [T, n_pairs, 2].
inline Fill rotation_fill(int64_t n_pairs) {
  return [=](std::span<double> out, CaseRandom& random) {
    RopeSpec spec;
    spec.rotary_dim = static_cast<int>(2 * n_pairs);
    std::vector<uint32_t> positions(out.size() / static_cast<size_t>(2 * n_pairs));
    for (uint32_t& position : positions) position = static_cast<uint32_t>(random() % 9000 + 1);
    std::vector<float> rotation(out.size());
    rope_rotation(rope_frequencies(spec), positions, rotation);
    std::copy(rotation.begin(), rotation.end(), out.begin());
  };
}

/// Two products and a sum: 3 roundoffs of the pair's length, [T, H, d] as rope leaves it. The
/// partner's size is not looked up: rotation keeps a pair's length, so the larger of the two stands
/// for it wherever in the head it is.
inline std::vector<double> rotation_errors(const CaseInputs::Input& x) {
  std::vector<double> allowed(x.values.size());
  const auto d = static_cast<size_t>(x.columns());
  for (size_t begin = 0; begin < allowed.size(); begin += d) {
    double largest = 0;
    for (size_t i = begin; i < begin + d; ++i) largest = std::max(largest, std::abs(x.values[i]));
    for (size_t i = begin; i < begin + d; ++i) allowed[i] = 4 * kUnitF32 * largest + kTinyF32;
  }
  return allowed;
}

}  // namespace tessera
