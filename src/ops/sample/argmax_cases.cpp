#include "ops/sample/argmax.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/cases.hpp"

namespace tessera {

template <>
std::vector<Case<Argmax>> cases<Argmax>() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case<Argmax>> result;
  const auto add = [&](std::string name, Tensor x) -> Case<Argmax>& {
    result.push_back({.name = std::move(name), .args = {.ids = u32({x.dim(0)}), .x = x}});
    return result.back();
  };
  for (const int64_t columns :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 49152}) {
    add(fmt::format("3x{}", columns), f32({3, columns}));
  }
  add("0x8", f32({0, 8}));
  add("0x10007", f32({0, 10'007}));
  add("ties_3x10007", with_gap(f32({3, 10'007}), 5)).fills["x"] = fill::integers(-2, 2);
  add("gaps_5x37", with_gap(f32({5, 37}), 3));
  for (const int64_t columns : {5, 16, 65, 1000}) {
    const auto with = [&](std::string_view name, const Fill& fill) {
      add(fmt::format("{}_9x{}", name, columns), f32({9, columns})).fills["x"] = fill;
    };
    with("ties", fill::integers(-2, 2));
    with("all_equal", fill::constant(-1.5));
    with("zeros_of_both_signs", fill::sprinkled(fill::constant(0.0), {-0.0}, 2));
    with("special_nan", fill::sprinkled(fill::normal(), {kNaN}, 2));
    with("special_nan_and_ties", fill::sprinkled(fill::integers(0, 1), {kNaN, kInf, -kInf}, 2));
    with("special_all_nan", fill::constant(kNaN));
    with("special_all_minus_infinity", fill::constant(-kInf));
    with("special_nan_or_minus_infinity", fill::sprinkled(fill::constant(kNaN), {-kInf}, 3));
  }
  for (const auto& [live, rows] : {std::pair{0, 3}, {2, 5}, {5, 5}}) {
    Case<Argmax>& c = add(fmt::format("live_{}_of_{}", live, rows), with_gap(f32({rows, 65}), 2));
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(live);
  }
  for (const auto& [rows, columns] : {std::pair{1, 49152}, {64, 49152}, {1, 151'936}}) {
    Case<Argmax>& c = add(fmt::format("bench_{}x{}", rows, columns), f32({rows, columns}));
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
