#pragma once

#include <cmath>

#include "ops/cases.hpp"

namespace tessera {

/// Error model of attention, y [T, Hq, d] over keys and values whose rows are d long (rows of NaN
/// are nobody's). A score is off by ds = |scale| (4 + sqrt(d)) u |q| |k| and, capped, by 4 u of
/// itself; a weight by 2 ds of itself, plus 8 roundoffs of the exponential and about
/// 2 (sqrt(S) + 4) of the two sums (Higham and Mary 2019); the result is a mean of values with
/// those weights.
inline std::vector<double> attention_errors(const CaseInputs& in, std::string_view keys,
                                            std::string_view values, double scale, double soft_cap,
                                            int64_t n_visible, std::span<const double> reference) {
  const auto d = static_cast<size_t>(in["q"].columns());
  double k_norm = 0, v_size = 0;
  const auto& k = in[keys].values;
  const auto& v = in[values].values;
  for (size_t begin = 0; begin < k.size(); begin += d) {
    double sum = 0;
    for (size_t i = begin; i < begin + d; ++i) {
      sum += k[i] * k[i];
      if (std::isfinite(v[i])) v_size = std::max(v_size, std::abs(v[i]));
    }
    if (std::isfinite(sum)) k_norm = std::max(k_norm, std::sqrt(sum));
  }
  const double sums = 2 * (std::sqrt(static_cast<double>(n_visible)) + 4);
  std::vector<double> allowed(reference.size());
  const auto& q = in["q"].values;
  for (size_t begin = 0; begin < allowed.size(); begin += d) {
    double squares = 0;
    for (size_t i = begin; i < begin + d; ++i) squares += q[i] * q[i];
    const double score = std::abs(scale) * std::sqrt(squares) * k_norm;
    double score_units = (4 + std::sqrt(static_cast<double>(d))) * score;
    if (soft_cap > 0) score_units += 4 * std::min(score, soft_cap);
    for (size_t i = begin; i < begin + d; ++i) {
      allowed[i] = kUnitF32 * ((2 * score_units + 8 + sums) * v_size) + kTinyF32;
    }
  }
  return allowed;
}

}  // namespace tessera
