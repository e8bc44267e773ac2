#include "ops/attention/attention.hpp"

#include <fmt/format.h>

#include "ops/attention/attention_cases.hpp"

namespace tessera {
namespace {

struct Heads {
  int64_t q, kv, d;
};

struct Cases {
  std::vector<Case<Attention>> all;

  Case<Attention>& add(std::string_view kind, int64_t t, int64_t s, Heads h,
                       DType kv = DType::kF32) {
    Case<Attention> c = {
        .name = fmt::format("{}{}_{}x{}_{}x{}x{}", kind, name(kv), t, s, h.q, h.kv, h.d),
        .args = {.y = f32({t, h.q, h.d}),
                 .q = f32({t, h.q, h.d}),
                 .k = Tensor::dense(kv, {s, h.kv, h.d}),
                 .v = Tensor::dense(kv, {s, h.kv, h.d}),
                 .scale = 1 / std::sqrt(static_cast<float>(h.d)),
                 .position_offset = s - t}};
    all.push_back(std::move(c));
    return all.back();
  }
};

}  // namespace

template <>
std::vector<Case<Attention>> cases<Attention>() {
  Cases cases;
  for (const DType kv : {DType::kF32, DType::kF16}) {
    for (const Heads h : std::initializer_list<Heads>{{1, 1, 1},
                                                      {2, 1, 3},
                                                      {3, 3, 8},
                                                      {3, 1, 17},
                                                      {4, 1, 32},
                                                      {9, 3, 64},
                                                      {9, 1, 64},
                                                      {4, 4, 80},
                                                      {4, 1, 128},
                                                      {2, 1, 256}}) {
      for (const auto& [t, s] : {std::pair{1, 1}, {1, 7}, {5, 5}, {3, 33}})
        cases.add("", t, s, h, kv);
    }
    for (const int64_t s : {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 257}) {
      cases.add("keys_", 1, s, {3, 1, 32}, kv);
      cases.add("square_", s, s, {2, 1, 32}, kv);
    }
    cases.add("full_", 9, 70, {3, 1, 64}, kv).args.causal = false;
    for (const int64_t window : {1, 2, 16, 33, 1000}) {
      cases.add(fmt::format("window{}_", window), 40, 70, {3, 1, 32}, kv).args.window = window;
    }
    // Without causality a window still bounds how far back a query sees.
    Case<Attention>& full_window = cases.add("full_window7_", 40, 70, {3, 1, 32}, kv);
    full_window.args.causal = false;
    full_window.args.window = 7;
    for (const float cap : {1.0f, 30.0f}) {
      cases.add(fmt::format("cap{}_", cap), 9, 40, {3, 1, 64}, kv).args.soft_cap = cap;
    }
    Case<Attention>& both = cases.add("window9_cap20_", 33, 65, {4, 2, 64}, kv);
    both.args.window = 9;
    both.args.soft_cap = 20;
    Case<Attention>& sharp = cases.add("sharp_", 9, 65, {3, 1, 64}, kv);
    sharp.fills["q"] = fill::normal(30);
    cases.add("equal_", 9, 65, {3, 1, 64}, kv).fills["q"] = fill::constant(0);
    cases.add("no_keys_", 3, 0, {3, 1, 16}, kv).args.position_offset = 0;
    cases.add("no_queries_", 0, 5, {3, 1, 16}, kv);
    // A query whose window begins behind the last key sees no key.
    Case<Attention>& past = cases.add("window_behind_keys_", 6, 8, {3, 1, 16}, kv);
    past.args.position_offset = 9;
    past.args.window = 4;
    Case<Attention>& gaps = cases.add("gaps_", 6, 19, {4, 2, 20}, kv);
    for (Tensor* tensor : {&gaps.args.y, &gaps.args.q, &gaps.args.k, &gaps.args.v}) {
      *tensor = with_gap(*tensor, 4);
    }
    // Enough queries for every size of tile that a GPU's row may choose.
    for (const int64_t t : {3000, 6000}) {
      Case<Attention>& many = cases.add("many_", t, t, {6, 1, 64}, kv);
      many.args.window = 40;
      many.quick = false;
    }
    const auto bench = [&](int64_t t, int64_t s, Heads h, bool test = false) {
      Case<Attention>& c = cases.add("bench_", t, s, h, kv);
      c.quick = false;
      c.bench = true;
      c.test = test;
    };
    bench(1, 1024, {9, 3, 64}, true);
    for (const Heads h : std::initializer_list<Heads>{{9, 3, 64}, {14, 2, 64}}) {
      for (const int64_t s : {512, 2048, 4096}) bench(s, s, h);
      for (const int64_t s : {512, 4096, 32768}) bench(1, s, h);
    }
    bench(4096, 4096, {16, 16, 64});
  }
  for (Case<Attention>& c : cases.all) {
    c.bound = [args = c.args](const CaseInputs& in, std::string_view,
                              std::span<const double> reference) {
      return attention_errors(in, "k", "v", static_cast<double>(args.scale),
                              static_cast<double>(args.soft_cap), args.k.dim(0), reference);
    };
  }
  return std::move(cases.all);
}

}  // namespace tessera
