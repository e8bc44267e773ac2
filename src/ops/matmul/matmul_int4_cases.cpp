#include "ops/matmul/matmul_int4.hpp"

#include <fmt/format.h>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

// As a product of matrices, with (nibble + |zero|) |scale| for the size of a weight, since the two
// parts may be multiplied apart.
Bound int4_bound(int64_t group_size, int64_t n) {
  return [=](const CaseInputs& in, std::string_view, std::span<const double> reference) {
    const auto& x = in["x"];
    Matrix w = {x.columns(), n, std::vector<double>(static_cast<size_t>(x.columns() * n))};
    for (size_t i = 0; i < w.values.size(); ++i) {
      const size_t group = i / static_cast<size_t>(group_size);
      w.values[i] =
          (in["w"].values[i] + std::abs(in["zeros"].values[group])) * in["scales"].values[group];
    }
    std::vector<double> errors =
        product_errors(matrix_of(x), transposed(w), DType::kInt4Flat, false);
    add_epilogue_errors(in, "", "", reference, errors);
    return errors;
  };
}

}  // namespace

template <>
std::vector<Case<MatmulInt4>> cases<MatmulInt4>() {
  std::vector<Case<MatmulInt4>> result;
  const auto add = [&](std::string_view kind, LinearShape s, int64_t group) -> Case<MatmulInt4>& {
    const int64_t n_words = (s.k * s.n + 7) / 8, n_groups = (s.k * s.n + group - 1) / group;
    result.push_back(
        {.name = fmt::format("{}{}x{}x{}_group{}", kind, s.m, s.n, s.k, group),
         .args = {.y = f32({s.m, s.n}),
                  .x = f32({s.m, s.k}),
                  .w = Tensor::dense(DType::kInt4Flat, {1, 8 * n_words}),
                  .scales = f32({n_groups}),
                  .zeros = f32({n_groups}),
                  .group_size = group},
         .fills = {{"scales", fill::uniform(0.05, 0.15)}, {"zeros", fill::uniform(6, 9)}},
         .bound = int4_bound(group, s.n)});
    return result.back();
  };
  for (const LinearShape s : std::initializer_list<LinearShape>{{0, 4, 4},
                                                                {1, 1, 1},
                                                                {1, 3, 5},
                                                                {2, 7, 9},
                                                                {1, 8, 8},
                                                                {3, 16, 17},
                                                                {4, 31, 33},
                                                                {5, 64, 64},
                                                                {9, 65, 63},
                                                                {1, 129, 127},
                                                                {17, 96, 40},
                                                                {1, 576, 65}}) {
    for (const int64_t group : {1, 7, 32, 128}) add("", s, group);
  }
  add("one_group_", {3, 20, 12}, 1000);
  add("slabs_", {9, 530, 35}, 32);  // more of K than one slab
  Case<MatmulInt4>& gaps = add("gaps_", {5, 33, 17}, 32);
  gaps.args.x = with_gap(gaps.args.x, 3);
  gaps.args.y = with_gap(gaps.args.y, 1);
  for (const int64_t live : {0, 3, 5}) {
    Case<MatmulInt4>& c = add(fmt::format("live_{}_", live), {5, 40, 24}, 32);
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(static_cast<double>(live));
  }
  for (const auto& [m, n, k] : {std::tuple{1, 1536, 576}, {512, 1536, 576}, {1, 4096, 4096}}) {
    Case<MatmulInt4>& c = add("bench_", {m, k, n}, 32);
    c.quick = c.test = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
