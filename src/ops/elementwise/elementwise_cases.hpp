#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/cases.hpp"

namespace tessera {

/// Cases of an op whose tensors all have one shape [M, N]: `set(args, tensor)` gives them theirs.
template <typename Op, typename Set>
std::vector<Case<Op>> elementwise_cases(const Bound& bound, Set&& set) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case<Op>> result;
  const auto add = [&](std::string name, Tensor tensor) -> Case<Op>& {
    Case<Op> c = {.name = std::move(name), .args = {}, .fills = {}, .bound = bound};
    set(c.args, tensor);
    result.push_back(std::move(c));
    return result.back();
  };
  const auto fill_all = [&](Case<Op>& c, const Fill& fill) {
    Op::visit(c.args, [&](std::string_view name, const Tensor&, Access access) {
      if (access == Access::kRead && name != "live") c.fills[std::string(name)] = fill;
    });
  };
  const auto live = [&](Case<Op>& c, double n) {
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(n);
  };
  for (const auto& [rows, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {0, 5},  {1, 1},  {1, 2},  {1, 3},   {3, 5},   {2, 7},   {1, 8},
           {5, 9},  {3, 15}, {2, 16}, {7, 17},  {3, 31},  {1, 32},  {2, 33},
           {1, 63}, {2, 64}, {3, 65}, {2, 127}, {1, 129}, {9, 576}, {1, 4099}}) {
    add(fmt::format("{}x{}", rows, columns), f32({rows, columns}));
  }
  add("gaps_5x9", with_gap(f32({5, 9}), 3));
  add("gaps_3x64", with_gap(f32({3, 64}), 5));
  add("rows_65539x3", f32({65539, 3})).quick = false;
  live(add("live_0_of_4", f32({4, 33})), 0);
  live(add("live_3_of_7", f32({7, 33})), 3);
  live(add("live_7_of_7_gaps", with_gap(f32({7, 17}), 1)), 7);
  fill_all(add("wide_5x129", f32({5, 129})), fill::uniform(-30, 30));
  fill_all(add("large_3x65", f32({3, 65})), fill::normal(1e15));
  fill_all(add("tiny_3x65", f32({3, 65})), fill::normal(1e-30));
  fill_all(
      add("special_5x67", f32({5, 67})),
      fill::sprinkled(fill::normal(3), {kInf, -kInf, kNaN, 0.0, -0.0, 88.5, -88.5, -104.0}, 3));
  for (const auto& [rows, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {1, 1536}, {512, 1536}, {1, 14336}, {512, 4096}}) {
    Case<Op>& c = add(fmt::format("bench_{}x{}", rows, columns), f32({rows, columns}));
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
