#include "ops/rope/rope.hpp"

#include <fmt/format.h>

#include "ops/rope/rope_cases.hpp"

namespace tessera {

template <>
std::vector<Case<Rope>> cases<Rope>() {
  std::vector<Case<Rope>> result;
  struct Heads {
    int64_t q, k, d, rotary;
  };
  const auto add = [&](std::string_view kind, int64_t t, Heads h,
                       RopePairing pairing) -> Case<Rope>& {
    Case<Rope> c = {.name = fmt::format("{}{}_{}x{}x{}_k{}_r{}", kind,
                                        pairing == RopePairing::kInterleaved ? "pairs" : "halves",
                                        t, h.q, h.d, h.k, h.rotary),
                    .args = {.q = f32({t, h.q, h.d}),
                             .rotation = f32({t, h.rotary / 2, 2}),
                             .pairing = pairing},
                    .fills = {{"rotation", rotation_fill(h.rotary / 2)}},
                    .bound = [](const CaseInputs& in, std::string_view output,
                                std::span<const double>) { return rotation_errors(in[output]); }};
    if (h.k > 0) c.args.k = f32({t, h.k, h.d});
    result.push_back(std::move(c));
    return result.back();
  };
  for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalfSplit}) {
    for (const Heads h : std::initializer_list<Heads>{{1, 1, 2, 2},
                                                      {2, 1, 4, 4},
                                                      {3, 3, 6, 6},
                                                      {3, 1, 10, 6},
                                                      {4, 2, 14, 14},
                                                      {9, 3, 16, 16},
                                                      {9, 3, 18, 18},
                                                      {2, 1, 32, 32},
                                                      {2, 2, 34, 34},
                                                      {2, 1, 64, 32},
                                                      {9, 3, 64, 64},
                                                      {4, 1, 80, 80},
                                                      {2, 1, 80, 20},
                                                      {3, 1, 128, 128},
                                                      {2, 0, 66, 64},
                                                      {1, 1, 256, 256}}) {
      for (const int64_t t : {1, 3, 8}) add("", t, h, pairing);
    }
    add("", 0, {2, 1, 8, 8}, pairing);
    add("many_", 65537, {1, 1, 2, 2}, pairing).quick = false;
    for (const int64_t live : {0, 3, 5}) {
      Case<Rope>& c = add(fmt::format("live_{}_gaps_", live), 5, {3, 1, 36, 36}, pairing);
      c.args.q = with_gap(c.args.q, 3);
      c.args.k = with_gap(c.args.k, 1);
      c.args.live = live_tensor();
      c.fills["live"] = fill::constant(static_cast<double>(live));
    }
    add("large_", 3, {2, 1, 20, 20}, pairing).fills["q"] = fill::normal(1e30);
    for (const auto& [t, h] : std::initializer_list<std::pair<int64_t, Heads>>{
             {1, {9, 3, 64, 64}}, {512, {9, 3, 64, 64}}, {512, {32, 8, 128, 128}}}) {
      Case<Rope>& c = add("bench_", t, h, pairing);
      c.quick = false;
      c.bench = true;
    }
  }
  return result;
}

}  // namespace tessera
