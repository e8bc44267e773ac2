#include "ops/sample/top_k.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/cases.hpp"

namespace tessera {

template <>
std::vector<Case<TopK>> cases<TopK>() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case<TopK>> result;
  const auto add = [&](std::string name, Tensor x, int64_t k) -> Case<TopK>& {
    const int64_t rows = x.dim(0);
    result.push_back({.name = fmt::format("{}_top{}", name, k),
                      .args = {.values = f32({rows, k}), .ids = u32({rows, k}), .x = x}});
    return result.back();
  };
  for (const auto& [columns, k] : {std::pair{1, 1},
                                   {2, 2},
                                   {3, 2},
                                   {7, 7},
                                   {8, 3},
                                   {17, 5},
                                   {33, 33},
                                   {64, 1},
                                   {65, 64},
                                   {129, 40},
                                   {1000, 999}}) {
    add(fmt::format("3x{}", columns), f32({3, columns}), k);
    const auto with = [&, columns = columns, k = k](std::string_view name, const Fill& fill) {
      add(fmt::format("{}_3x{}", name, columns), f32({3, columns}), k).fills["x"] = fill;
    };
    with("ties", fill::integers(-2, 2));
    with("special_nan", fill::sprinkled(fill::normal(), {kNaN, -kInf}, 2));
    with("special_nan_and_ties", fill::sprinkled(fill::integers(0, 1), {kNaN, kInf}, 2));
    with("special_all_nan", fill::constant(kNaN));
  }
  add("0x8", f32({0, 8}), 3);
  {
    Case<TopK>& c = add("gaps_5x37", with_gap(f32({5, 37}), 3), 4);
    c.args.values = with_gap(c.args.values, 1);
    c.args.ids = with_gap(c.args.ids, 2);
  }
  for (const auto& [live, rows] : {std::pair{0, 3}, {2, 5}, {5, 5}}) {
    Case<TopK>& c = add(fmt::format("live_{}_of_{}", live, rows), f32({rows, 65}), 9);
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(live);
  }
  for (const int64_t rows : {1, 64}) {
    Case<TopK>& c = add(fmt::format("bench_{}x49152", rows), f32({rows, 49152}), 40);
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
