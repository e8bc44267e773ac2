#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

/// Size of the parts of a weight, of which the scale and the minimum or offset are multiplied
/// apart, against the size of the weight itself.
double parts_factor(DType weight) {
  switch (weight) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ2_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return 3;
    default:
      return 1;
  }
}

/// Rounds a row to q8 steps (ops/quantize/quantize_rows.hpp) and marks the values near a tie.
void quantise_row(std::span<double> values, std::span<double> flips, double units) {
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    double largest = 0;
    for (size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::abs(values[i]));
    if (largest == 0) continue;
    const double step = largest / 127;
    for (size_t i = begin; i < begin + 32; ++i) {
      const double steps = values[i] / step;
      const double q = std::nearbyint(steps);
      // Value and step are both off by `units`, and the quotient is rounded.
      const double error = (2 * units + 4) * kUnitF32 * std::abs(steps);
      if (0.5 - std::abs(steps - q) <= error) flips[i] = step;
      values[i] = q * step;
    }
  }
}

}  // namespace

std::vector<double> product_errors(const Matrix& x, const Matrix& w, DType weight, bool q8,
                                   double input_units) {
  std::vector<double> w_norms, errors;
  for (int64_t j = 0; j < w.rows; ++j) w_norms.push_back(norm_of(w.row(j)));
  const auto n_terms = static_cast<double>(q8 ? x.columns / 32 : x.columns);
  const double units = (4 + std::sqrt(n_terms)) * parts_factor(weight) + input_units;
  for (int64_t i = 0; i < x.rows; ++i) {
    const double x_norm = norm_of(x.row(i));
    for (const double w_norm : w_norms) {
      errors.push_back(units * kUnitF32 * x_norm * w_norm +
                       kTinyF32 * static_cast<double>(x.columns));
    }
  }
  return errors;
}

NormedRows normed_rows(const CaseInputs& in, NormKind norm, float eps, bool q8) {
  const auto& x = in["x"];
  const auto k = static_cast<size_t>(x.columns());
  NormedRows result = {.values = matrix_of(x), .q8 = q8};
  const double n = 6 + std::sqrt(static_cast<double>(k));
  if (q8) result.flips = {x.shape[0], x.shape[1], std::vector<double>(x.values.size())};
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const auto row = std::span(result.values.values).subspan(static_cast<size_t>(i) * k, k);
    double mean = 0, squares = 0;
    for (const double value : row) mean += value / static_cast<double>(k);
    if (norm == NormKind::kRms) mean = 0;
    for (const double value : row) {
      squares += (value - mean) * (value - mean) / static_cast<double>(k);
    }
    const double deviation = std::sqrt(squares + static_cast<double>(eps));
    for (size_t c = 0; c < k; ++c) {
      row[c] = (row[c] - mean) / deviation * in["norm_weight"].values[c];
      if (in.has("norm_bias")) row[c] += in["norm_bias"].values[c];
    }
    // The mean is off by n u of the values' size, which the deviation magnifies.
    result.units = std::max(result.units, n * (1 + std::abs(mean) / deviation));
    if (q8) {
      quantise_row(row, std::span(result.flips.values).subspan(static_cast<size_t>(i) * k, k),
                   result.units);
    }
  }
  return result;
}

std::vector<double> normed_product_errors(const NormedRows& n, const Matrix& w, DType weight) {
  std::vector<double> errors = product_errors(n.values, w, weight, n.q8, n.units);
  if (!n.q8) return errors;
  for (int64_t i = 0; i < n.values.rows; ++i) {
    const auto flips = n.flips.row(i);
    for (size_t k = 0; k < flips.size(); ++k) {
      if (flips[k] == 0) continue;
      for (int64_t j = 0; j < w.rows; ++j) {
        errors[static_cast<size_t>(i * w.rows + j)] += flips[k] * std::abs(w.row(j)[k]);
      }
    }
  }
  return errors;
}

std::vector<std::pair<DType, int64_t>> weight_types_and_depths() {
  std::vector<std::pair<DType, int64_t>> result;
  for (const DType dtype : ops::kWeightTypes) {
    switch (info(dtype).block_size) {
      case 1:
        for (const int64_t k :
             {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 576}) {
          result.emplace_back(dtype, k);
        }
        break;
      case 32:
        for (const int64_t k : {32, 64, 96, 160, 576, 640, 896, 1536})
          result.emplace_back(dtype, k);
        break;
      default:
        for (const int64_t k : {256, 512, 768, 1536}) result.emplace_back(dtype, k);
    }
  }
  return result;
}

}  // namespace tessera
