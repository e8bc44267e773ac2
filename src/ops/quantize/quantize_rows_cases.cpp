#include "ops/quantize/quantize_rows.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/cases.hpp"

namespace tessera {

// Specified to the bit; the suite compares whole rows.
template <>
std::vector<Case<QuantizeRows>> cases<QuantizeRows>() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case<QuantizeRows>> result;
  const auto add = [&](std::string_view kind, int64_t m, int64_t k) -> Case<QuantizeRows>& {
    result.push_back({.name = fmt::format("{}{}x{}", kind, m, k),
                      .args = {.y = Tensor::dense(DType::kQ8, {m, k}), .x = f32({m, k})}});
    return result.back();
  };
  for (const int64_t k : {32, 64, 96, 160, 576, 640, 896, 1536}) {
    for (const int64_t m : {1, 2, 5}) add("", m, k);
  }
  add("", 0, 64);
  add("many_", 65537, 32).quick = false;
  add("zeros_", 3, 96).fills["x"] = fill::constant(0);
  add("zeros_and_values_", 9, 96).fills["x"] = fill::sprinkled(fill::constant(0), {1, -2}, 64);
  // With a largest value of 127 the steps are integers, and halves are ties.
  add("ties_", 9, 96).fills["x"] =
      fill::sprinkled(fill::integers(-127, 126), {127, 0.5, 1.5, -2.5, 63.5, -64.5, 126.5}, 2);
  add("large_", 3, 96).fills["x"] = fill::normal(1e37);
  add("tiny_", 3, 96).fills["x"] = fill::normal(1e-30);
  add("special_", 9, 96).fills["x"] = fill::sprinkled(fill::normal(), {kNaN, kInf, -kInf}, 40);
  for (const auto& [live, rows] : {std::pair{0, 3}, {3, 5}, {5, 5}}) {
    Case<QuantizeRows>& c = add(fmt::format("live_{}_", live), rows, 96);
    c.args.x = with_gap(c.args.x, 3);
    c.args.y = with_gap(c.args.y, 1);
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(live);
  }
  for (const auto& [m, k] : {std::pair{1, 576}, {512, 576}, {512, 1536}, {512, 4096}}) {
    Case<QuantizeRows>& c = add("bench_", m, k);
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
