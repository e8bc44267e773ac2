#include "ops/softmax/softmax.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/cases.hpp"

namespace tessera {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// x - max is rounded once: a relative error of |x - max| roundoffs behind the exponential, which
// has 4 of its own; the sum of C positive terms about sqrt(C) (Higham and Mary 2019).
std::vector<double> allowed_errors(const CaseInputs& in, std::string_view,
                                   std::span<const double> reference) {
  const auto& x = in["x"];
  const auto columns = static_cast<size_t>(x.columns());
  std::vector<double> allowed(reference.size());
  for (size_t row = 0; row * columns < reference.size(); ++row) {
    const auto values = x.row(static_cast<int64_t>(row));
    const double largest = *std::max_element(values.begin(), values.end());
    for (size_t i = 0; i < columns; ++i) {
      const double result = reference[row * columns + i];
      if (result == 0 || !std::isfinite(result)) continue;
      const double units = 8 + std::sqrt(static_cast<double>(columns)) + largest - values[i];
      allowed[row * columns + i] = units * kUnitF32 * result + kTinyF32;
    }
  }
  return allowed;
}

/// Every `every`th row is all -infinity.
Fill masked_rows(int64_t columns, int64_t every) {
  return [=](std::span<double> out, CaseRandom& random) {
    fill::sprinkled(fill::normal(4), {-kInf}, 3)(out, random);
    for (size_t i = 0; i < out.size(); ++i) {
      if (static_cast<int64_t>(i) / columns % every == 0) out[i] = -kInf;
    }
  };
}

}  // namespace

template <>
std::vector<Case<Softmax>> cases<Softmax>() {
  std::vector<Case<Softmax>> result;
  const auto add = [&](std::string name, Tensor x) -> Case<Softmax>& {
    result.push_back({.name = std::move(name), .args = {.y = x, .x = x}, .bound = allowed_errors});
    return result.back();
  };
  for (const int64_t columns :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 4099}) {
    add(fmt::format("3x{}", columns), f32({3, columns})).fills["x"] = fill::normal(3);
  }
  add("0x8", f32({0, 8}));
  add("gaps_5x37", with_gap(f32({5, 37}), 3));
  add("rows_65537x3", f32({65537, 3})).quick = false;
  add("equal_2x65", f32({2, 65})).fills["x"] = fill::constant(7);
  add("large_3x65", f32({3, 65})).fills["x"] = fill::normal(1e15);
  add("wide_3x129", f32({3, 129})).fills["x"] = fill::uniform(-120, 0);
  add("tiny_3x65", f32({3, 65})).fills["x"] = fill::normal(1e-30);
  add("special_masked_5x17", f32({5, 17})).fills["x"] = masked_rows(17, 2);
  add("special_masked_4x70", f32({4, 70})).fills["x"] = masked_rows(70, 3);
  for (const auto& [rows, columns] : {std::pair{1, 49152}, {576, 512}, {4096, 1024}}) {
    Case<Softmax>& c = add(fmt::format("bench_{}x{}", rows, columns), f32({rows, columns}));
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
