#pragma once

#include <fmt/format.h>

#include <cmath>

#include "ops/cases.hpp"

namespace tessera {

/// Cases of a row-wise norm, x and y [M, D].
template <typename Op>
std::vector<Case<Op>> norm_cases(const std::function<Bound(float eps)>& bound) {
  std::vector<Case<Op>> result;
  const auto add = [&](std::string name, Tensor x, float eps = 1e-5f) -> Case<Op>& {
    Case<Op> c = {.name = std::move(name), .args = {}, .fills = {}, .bound = bound(eps)};
    c.args.x = c.args.y = x;
    c.args.weight = f32({x.shape[-1]});
    c.args.eps = eps;
    result.push_back(std::move(c));
    return result.back();
  };
  for (const int64_t d :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 576, 577, 1536, 4096}) {
    add(fmt::format("3x{}", d), f32({3, d}));
  }
  add("0x64", f32({0, 64}));
  add("1x576", f32({1, 576}), 1e-6f);
  add("17x100", f32({17, 100}));
  add("gaps_5x37", with_gap(f32({5, 37}), 3));
  add("rows_65537x2", f32({65537, 2})).quick = false;
  add("zeros_3x65", f32({3, 65})).fills["x"] = fill::constant(0);
  add("equal_3x65", f32({3, 65})).fills["x"] = fill::constant(0.1);
  add("offset_3x129", f32({3, 129})).fills["x"] = fill::normal(1, 1000);
  add("large_3x65", f32({3, 65})).fills["x"] = fill::normal(1e15);
  add("tiny_3x65", f32({3, 65})).fills["x"] = fill::normal(1e-30);
  for (const auto& [live, rows] : {std::pair{0, 3}, {2, 5}, {5, 5}}) {
    Case<Op>& c = add(fmt::format("live_{}_of_{}", live, rows), with_gap(f32({rows, 65}), 2));
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(live);
  }
  for (const auto& [rows, d] : {std::pair{1, 576}, {512, 576}, {1, 4096}, {512, 4096}}) {
    Case<Op>& c = add(fmt::format("bench_{}x{}", rows, d), f32({rows, d}));
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
