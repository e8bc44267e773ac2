#pragma once

#include <cmath>

#include "ops/op.hpp"
#include "ops/reference.hpp"

// What the references of the element-wise ops share.

namespace tessera::ref {

inline double silu_of(double x) {
  return x / (1 + std::exp(-x));
}

/// y[i] = f(x[i]) over the rows in use.
template <typename F>
void map_rows(const Tensor& y, const Tensor& x, const Tensor& live, F f) {
  for (int64_t row = 0; row < live_rows(live, x.dim(0)); ++row) {
    Values values = read_row(x, row);
    for (double& value : values) value = f(value);
    write_row(y, row, values);
  }
}

/// y[i] = f(a[i], b[i]) over the rows in use.
template <typename F>
void map_rows(const Tensor& y, const Tensor& a, const Tensor& b, const Tensor& live, F f) {
  for (int64_t row = 0; row < live_rows(live, a.dim(0)); ++row) {
    Values values = read_row(a, row);
    const Values others = read_row(b, row);
    for (size_t i = 0; i < values.size(); ++i) values[i] = f(values[i], others[i]);
    write_row(y, row, values);
  }
}

}  // namespace tessera::ref
