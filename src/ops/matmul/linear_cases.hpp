#pragma once

#include <cmath>

#include "ops/cases.hpp"
#include "ops/norm/norm.hpp"

namespace tessera {

// Error models of products of matrices. u is the unit roundoff of f32.
//
// A sum of n products is off by about (4 + sqrt(n)) u |x| |w| (rounding errors behave like random
// ones: Higham and Mary 2019), with Euclidean norms of the two vectors. n is K, or K / 32 with q8
// activations, where 32 integers are summed exactly. Formats with an offset or a minimum may be
// multiplied part by part (scale * sum(q x) + minimum * sum(x)), and the parts are larger than the
// values that they make up.

inline double norm_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// A matrix [rows, columns] of f64.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  std::span<const double> row(int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * columns),
                                     static_cast<size_t>(columns));
  }
};

inline Matrix matrix_of(const CaseInputs::Input& input) {
  return {input.shape[0], input.shape[1], input.values};
}

inline Matrix transposed(const Matrix& m) {
  Matrix result = {m.columns, m.rows, std::vector<double>(m.values.size())};
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) {
      result.values[static_cast<size_t>(j * m.rows + i)] =
          m.values[static_cast<size_t>(i * m.columns + j)];
    }
  }
  return result;
}

/// Errors of x w^T [M, N], all but the last roundings. The elements of x are off by `input_units`
/// roundoffs already; with `q8` they are whole steps of blocks of 32.
std::vector<double> product_errors(const Matrix& x, const Matrix& w, DType weight, bool q8,
                                   double input_units = 0);

/// Adds the roundings of y = product + bias + residual.
inline void add_epilogue_errors(const CaseInputs& in, std::string_view bias,
                                std::string_view residual, std::span<const double> reference,
                                std::vector<double>& errors) {
  for (size_t i = 0; i < errors.size(); ++i) {
    double size = std::abs(reference[i]);
    if (in.has(bias)) {
      const auto& values = in[bias].values;
      size += std::abs(values[i % values.size()]);
    }
    if (in.has(residual)) size += std::abs(in[residual].values[i]);
    errors[i] += 2 * kUnitF32 * size;
  }
}

/// norm(x) as the fused contracts feed it to their products, with what can go wrong on the way.
struct NormedRows {
  Matrix values;  ///< normalised, and for q8 rounded to steps
  bool q8 = false;
  double units = 0;  ///< roundoffs of a normalised value
  /// q8: size of a step where rounding is so near a tie that a value's error may move it to the
  /// neighbour; 0 elsewhere.
  Matrix flips = {};
};
NormedRows normed_rows(const CaseInputs& in, NormKind norm, float eps, bool q8);

/// Errors of n w^T for normalised (and quantised) rows.
std::vector<double> normed_product_errors(const NormedRows& n, const Matrix& w, DType weight);

/// Shapes that products are tested with.
struct LinearShape {
  int64_t m, k, n;
};
/// Every storage type, with a depth that its blocks divide.
std::vector<std::pair<DType, int64_t>> weight_types_and_depths();

}  // namespace tessera
