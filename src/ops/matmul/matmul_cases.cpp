#include "ops/matmul/matmul.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/matmul/linear_cases.hpp"

namespace tessera {
namespace {

Bound matmul_bound(const Matmul::Args& args) {
  return [order = args.order, weight = args.w.dtype, q8 = args.x.dtype == DType::kQ8](
             const CaseInputs& in, std::string_view, std::span<const double> reference) {
    const Matrix w = matrix_of(in["w"]);
    std::vector<double> errors = product_errors(
        matrix_of(in["x"]), order == WeightOrder::kOutIn ? w : transposed(w), weight, q8);
    add_epilogue_errors(in, "bias", "residual", reference, errors);
    return errors;
  };
}

struct Cases {
  std::vector<Case<Matmul>> all;

  Case<Matmul>& add(std::string_view kind, LinearShape s, DType w, DType x = DType::kF32,
                    WeightOrder order = WeightOrder::kOutIn) {
    const bool out_in = order == WeightOrder::kOutIn;
    Matmul::Args args = {.y = f32({s.m, s.n}),
                         .x = Tensor::dense(x, {s.m, s.k}),
                         .w = Tensor::dense(w, out_in ? Shape{s.n, s.k} : Shape{s.k, s.n}),
                         .order = order};
    all.push_back({.name = fmt::format("{}{}_{}{}_{}x{}x{}", kind, name(x), name(w),
                                       out_in ? "" : "_in_out", s.m, s.n, s.k),
                   .args = args,
                   .bound = matmul_bound(args)});
    return all.back();
  }
  static void add_bias(Case<Matmul>& c) { c.args.bias = f32({c.args.y.dim(1)}); }
  static void add_residual(Case<Matmul>& c) { c.args.residual = f32(c.args.y.shape); }
  static void add_gaps(Case<Matmul>& c) {
    c.args.y = with_gap(c.args.y, 3);
    c.args.x = with_gap(c.args.x, 1);
    c.args.w = with_gap(c.args.w, 1);
    if (c.args.residual.defined()) c.args.residual = with_gap(c.args.residual, 2);
  }
  static void add_live(Case<Matmul>& c, double live) {
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(live);
  }

  /// Depths and widths of every type of weight, with the types of activations that it meets.
  void add_types() {
    int64_t n = 1;
    for (const auto& [w, k] : weight_types_and_depths()) {
      n = n * 7 % 71;  // odd and even widths, below and above every tile
      add("", {1, k, n}, w);
      add("", {5, k, n}, w);
      if (is_block_format(w)) {
        add("", {1, k, n}, w, DType::kQ8);
        add("", {6, k, n}, w, DType::kQ8);
      }
    }
    for (const auto& [x, w, k] : std::initializer_list<std::tuple<DType, DType, int64_t>>{
             {DType::kF16, DType::kF32, 33},
             {DType::kBF16, DType::kF32, 33},
             {DType::kF16, DType::kF16, 65},
             {DType::kBF16, DType::kBF16, 65},
             {DType::kF16, DType::kQ8_0, 64},
             {DType::kBF16, DType::kQ4_K, 256}}) {
      add("", {3, k, 17}, w, x);
    }
  }

  /// Numbers of rows, one at a time and around every tile.
  void add_rows() {
    for (const int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 65}) {
      add("rows_", {m, 67, 37}, DType::kF32);
      add("rows_", {m, 67, 37}, DType::kBF16);
      add("rows_", {m, 96, 19}, DType::kQ8_0);
      add("rows_", {m, 96, 19}, DType::kQ8_0, DType::kQ8);
      add("rows_", {m, 96, 19}, DType::kQ4_0, DType::kQ8);
      add("rows_", {m, 512, 9}, DType::kQ2_K, DType::kQ8);
      add("rows_", {m, 512, 9}, DType::kQ5_K, DType::kQ8);
      add("rows_", {m, 512, 9}, DType::kQ6_K, DType::kQ8);
    }
    for (const int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129}) {
      add("columns_", {1, 64, n}, DType::kF32);
      add("columns_", {4, 64, n}, DType::kQ5_0, DType::kQ8);
    }
    add("columns_", {7, 64, 0}, DType::kF32);
    add("tall_", {129, 70, 130}, DType::kF32).quick = false;
    add("deep_", {3, 8192, 5}, DType::kF32).quick = false;
    add("deep_", {3, 8192, 5}, DType::kQ4_K, DType::kQ8).quick = false;
    add("deep_", {17, 8192, 5}, DType::kQ5_K, DType::kQ8).quick = false;
    add("deep_", {7, 8192, 5}, DType::kQ2_K, DType::kQ8).quick = false;
    add("deep_", {1, 8192, 5}, DType::kQ6_K, DType::kQ8).quick = false;
    add("wide_", {1, 32, 65'543}, DType::kQ8_0).quick = false;
  }

  void add_in_out() {
    for (const DType w : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const LinearShape s : std::initializer_list<LinearShape>{{0, 5, 3},
                                                                    {1, 1, 1},
                                                                    {1, 7, 5},
                                                                    {3, 16, 17},
                                                                    {4, 33, 64},
                                                                    {5, 64, 65},
                                                                    {17, 65, 33},
                                                                    {2, 128, 129},
                                                                    {9, 31, 100}}) {
        add("", s, w, DType::kF32, WeightOrder::kInOut);
      }
      Case<Matmul>& c = add("all_", {5, 65, 33}, w, DType::kF32, WeightOrder::kInOut);
      add_bias(c);
      add_residual(c);
      add_gaps(c);
      add_live(c, 4);
    }
  }

  /// As many rows as packed products need; more than one slab of K, and than one block of rows or
  /// of columns.
  void add_many() {
    for (const WeightOrder order : {WeightOrder::kOutIn, WeightOrder::kInOut}) {
      for (const DType w : {DType::kF32, DType::kF16, DType::kBF16}) {
        Case<Matmul>& c = add("many_all_", {131, 67, 37}, w, DType::kF32, order);
        add_bias(c);
        add_residual(c);
        add_gaps(c);
      }
      add("many_", {150, 530, 65}, DType::kF32, DType::kF32, order);
      add("many_", {1347, 9, 33}, DType::kF32, DType::kF32, order).quick = false;
      add("many_", {129, 517, 2051}, DType::kF32, DType::kF32, order).quick = false;
      for (const double live : {0, 5, 149}) {
        const std::string kind = fmt::format("many_live_{}_", live);
        add_live(add(kind, {150, 40, 33}, DType::kF32, DType::kF32, order), live);
      }
    }
    add("many_", {128, 65, 35}, DType::kBF16, DType::kF16);
    for (const auto& [w, k] : weight_types_and_depths()) {
      if (is_block_format(w)) add("many_", {128, k, 17}, w);
    }
    add("many_", {130, 96, 19}, DType::kQ8_0, DType::kQ8);
  }

  void add_options() {
    for (const DType w :
         {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ8_0, DType::kQ4_K}) {
      for (const DType x : {DType::kF32, DType::kQ8}) {
        if (x == DType::kQ8 && !is_block_format(w)) continue;
        const int64_t k = is_block_format(w) ? 256 : 35;
        for (const int64_t m : {1, 7, 18}) {
          add_bias(add("bias_", {m, k, 33}, w, x));
          add_residual(add("residual_", {m, k, 33}, w, x));
          Case<Matmul>& both = add("bias_residual_", {m, k, 33}, w, x);
          add_bias(both);
          add_residual(both);
          Case<Matmul>& all_options = add("all_", {m, k, 33}, w, x);
          add_bias(all_options);
          add_residual(all_options);
          add_gaps(all_options);
          add_live(all_options, static_cast<double>(m - m / 3));
        }
        add_gaps(add("gaps_", {5, k, 9}, w, x));
        add_live(add("live_none_", {5, k, 9}, w, x), 0);
        add_live(add("live_all_", {5, k, 9}, w, x), 5);
      }
    }
  }

  void add_values() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    for (const auto& [kind, x, w] : std::initializer_list<std::tuple<std::string_view, Fill, Fill>>{
             {"large_", fill::normal(1e15), fill::normal(1e15)},
             {"tiny_", fill::normal(1e-25), fill::normal(1e-20)},
             {"positive_", fill::uniform(0, 1), fill::uniform(0, 1)},
             {"cancelling_", fill::normal(1, 100), fill::uniform(-1, 1)},
             {"special_", fill::sprinkled(fill::normal(), {kInf, -kInf, kNaN}, 60), fill::normal()},
             {"zeros_", fill::constant(0), fill::normal()}}) {
      for (const int64_t m : {1, 5}) {
        Case<Matmul>& c = add(kind, {m, 67, 19}, DType::kF32);
        c.fills["x"] = x;
        c.fills["w"] = w;
      }
    }
    for (const DType w : ops::kWeightTypes) {
      if (!is_block_format(w)) continue;
      const int64_t k = info(w).block_size == 32 ? 96 : 512;
      for (const DType x : {DType::kF32, DType::kQ8}) {
        // Every value of a block at the end of its range: integer sums reach their largest size.
        Case<Matmul>& c = add("extreme_", {3, k, 17}, w, x);
        c.fills["x"] = fill::sprinkled(fill::constant(1), {-1}, 5);
        c.fills["w"] = fill::constant(-1);
        add("zeros_", {3, k, 17}, w, x).fills["x"] = fill::constant(0);
      }
    }
  }

  void add_bench() {
    // The default model: q and output, k and v, gate and up, down, head. Then larger ones, and the
    // head of a large vocabulary.
    for (const auto& [n, k] : {std::pair{576, 576},
                               {192, 576},
                               {1536, 576},
                               {576, 1536},
                               {49152, 576},
                               {4096, 4096},
                               {14336, 4096},
                               {151'936, 896}}) {
      for (const DType w : ops::kWeightTypes) {
        if (k % info(w).block_size != 0) continue;
        for (const int64_t m : {1, 512}) {
          if (m > 1 && n > 100'000) continue;
          for (const DType x : {DType::kF32, DType::kQ8}) {
            if (x == DType::kQ8 && !is_block_format(w)) continue;
            Case<Matmul>& c = add("bench_", {m, k, n}, w, x);
            c.quick = false;
            c.bench = true;
            c.test = m == 1 && n < 2000;
          }
        }
      }
    }
    // Products that vendors' libraries are measured with: large ones, and those of a GPT-2.
    for (const auto& [m, n, k] : {std::tuple{2048, 2048, 2048},
                                  {4096, 4096, 4096},
                                  {512, 768, 768},
                                  {512, 3072, 768},
                                  {512, 768, 3072},
                                  {512, 16384, 768}}) {
      for (const DType w : {DType::kF32, DType::kF16, DType::kQ4_1}) {
        Case<Matmul>& c = add("bench_", {m, k, n}, w);
        c.quick = c.test = false;
        c.bench = true;
      }
    }
    for (const auto& [m, n, k] : {std::tuple{512, 1536, 576}, {1024, 1024, 1024}}) {
      Case<Matmul>& c = add("bench_", {m, k, n}, DType::kF32, DType::kF32, WeightOrder::kInOut);
      c.quick = c.test = false;
      c.bench = true;
    }
  }
};

}  // namespace

template <>
std::vector<Case<Matmul>> cases<Matmul>() {
  Cases cases;
  cases.add_types();
  cases.add_rows();
  cases.add_in_out();
  cases.add_many();
  cases.add_options();
  cases.add_values();
  cases.add_bench();
  return std::move(cases.all);
}

}  // namespace tessera
