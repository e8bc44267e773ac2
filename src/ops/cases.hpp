#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.hpp"

namespace tessera {

using CaseRandom = std::mt19937_64;

/// Writes the values of a tensor, row-major, before they are rounded to its type.
using Fill = std::function<void(std::span<double> values, CaseRandom& random)>;

namespace fill {
Fill normal(double deviation = 1, double mean = 0);
Fill uniform(double low, double high);
Fill constant(double value);
Fill integers(int64_t low, int64_t high);  ///< both included
Fill values(std::vector<double> values);   ///< exactly these, row-major
/// About one value in `every` becomes one of `specials`, the rest is `base`.
Fill sprinkled(Fill base, std::vector<double> specials, int every = 8);
}  // namespace fill

/// Inputs of a case as f64, dense, decoded: what error models look at.
struct CaseInputs {
  struct Input {
    Shape shape;
    std::vector<double> values;
    int64_t columns() const { return shape.rank() == 0 ? 1 : shape[-1]; }
    std::span<const double> row(int64_t i) const {
      const auto width = static_cast<size_t>(columns());
      return std::span(values).subspan(static_cast<size_t>(i) * width, width);
    }
  };
  std::map<std::string, Input, std::less<>> tensors;
  bool has(std::string_view name) const { return tensors.find(name) != tensors.end(); }
  const Input& operator[](std::string_view name) const;
};

/// Error model: the allowed absolute error of every element of an output (named as in visit()),
/// given the inputs and the f64 reference. Elements that the reference does not write, and values
/// that are no finite numbers, are compared by the suite itself, bit for bit or kind for kind.
using Bound = std::function<std::vector<double>(const CaseInputs& inputs, std::string_view output,
                                                std::span<const double> reference)>;

/// Unit roundoff: half a step between neighbours, relative.
inline constexpr double kUnitF32 = 0x1p-24;
inline constexpr double kUnitF16 = 0x1p-11;
inline constexpr double kUnitBF16 = 0x1p-8;
/// Results this small may be flushed to zero or lose bits.
inline constexpr double kTinyF32 = 0x1p-126;

namespace bound {
/// Nothing but the bits of the reference rounded to the output's type.
Bound exact();
/// `units` roundoffs of f32 relative to the result, and `absolute` on top.
Bound relative(double units, double absolute = kTinyF32);
}  // namespace bound

/// One set of arguments that every row of the op which supports it is tested (and timed) with. The
/// tensors of `args` have a type, a shape and strides but no buffer yet.
template <typename Op>
struct Case {
  std::string name;
  typename Op::Args args;
  std::map<std::string, Fill, std::less<>> fills = {};  ///< by tensor; missing: normal(1)
  Bound bound = bound::exact();
  bool quick = true;   ///< part of the quick run
  bool bench = false;  ///< also a benchmark
  bool test = true;    ///< false: too large for the f64 reference, timed only
};

/// The op's cases; defined in <folder>/<op>_cases.cpp.
template <typename Op>
std::vector<Case<Op>> cases();

/// Bytes of a tensor filled with values in its type: block formats are encoded where
/// tensor/convert.hpp can, elsewhere they are random bits with scales of a usual size. Covers
/// span_bytes(); padding between rows is 0xff, a NaN in every float type.
std::vector<std::byte> make_bytes(const Tensor& tensor, const Fill& fill, uint64_t seed);

/// The fill of a tensor of a case.
template <typename Op>
Fill fill_of(const Case<Op>& c, std::string_view tensor) {
  const auto found = c.fills.find(tensor);
  return found == c.fills.end() ? fill::normal() : found->second;
}

/// Calls f(row) with the address offset in bytes of every row (all dimensions but the last).
template <typename F>
void for_each_row(const Tensor& tensor, F&& f) {
  const int n_outer = std::max(tensor.shape.rank() - 1, 0);
  for (int64_t i = 0, n = tensor.n_rows(); i < n; ++i) {
    int64_t rest = i, offset = 0;
    for (int d = n_outer - 1; d >= 0; --d) {
      offset += rest % tensor.shape[d] * tensor.stride_bytes[static_cast<size_t>(d)];
      rest /= tensor.shape[d];
    }
    f(i, offset);
  }
}

/// The bytes at row strides decoded to f64, dense (any type but int4_flat).
std::vector<double> decode(const Tensor& tensor, std::span<const std::byte> bytes);

// Shorthands for case files.
inline Tensor f32(Shape shape) {
  return Tensor::dense(DType::kF32, shape);
}
inline Tensor u32(Shape shape) {
  return Tensor::dense(DType::kU32, shape);
}
inline Tensor live_tensor() {
  return u32({1});
}
/// The same tensor with `gap` values (whole blocks) of padding behind every row.
Tensor with_gap(const Tensor& dense, int64_t gap);

}  // namespace tessera
