#include "ops/quantize/convert.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/cases.hpp"

namespace tessera {

// Decoding rounds to f32 once at most; 16-bit results are that value rounded to nearest even.
template <>
std::vector<Case<Convert>> cases<Convert>() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case<Convert>> result;
  const auto add = [&](std::string_view kind, DType x, DType y, int64_t m,
                       int64_t k) -> Case<Convert>& {
    result.push_back({.name = fmt::format("{}{}_to_{}_{}x{}", kind, name(x), name(y), m, k),
                      .args = {.y = Tensor::dense(y, {m, k}), .x = Tensor::dense(x, {m, k})}});
    return result.back();
  };
  for (const DType y : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType x : ops::kWeightTypes) {
      const int block = info(x).block_size;
      for (const int64_t n : {1, 2, 3, 5}) add("", x, y, 3, block * n);
      if (block == 1) {
        for (const int64_t k : {7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129}) {
          add("", x, y, 2, k);
        }
        add("special_", x, y, 3, 100).fills["x"] = fill::sprinkled(
            fill::normal(), {kInf, -kInf, kNaN, 0.0, -0.0, 65504, 65519, 65520, 6e-8, 3e-8, 1e-39},
            2);
        add("tiny_", x, y, 3, 100).fills["x"] = fill::normal(1e-6);
        add("large_", x, y, 3, 100).fills["x"] = fill::normal(5e4);
      }
      add("", x, y, 0, block);
      Case<Convert>& c = add("gaps_", x, y, 5, block * 3);
      c.args.x = with_gap(c.args.x, 1);
      c.args.y = with_gap(c.args.y, 3);
    }
  }
  for (const DType x : {DType::kF32, DType::kF16, DType::kQ4_0, DType::kQ8_0}) {
    Case<Convert>& c = add("bench_", x, x == DType::kF32 ? DType::kF16 : DType::kF32, 576, 1536);
    c.quick = false;
    c.bench = true;
  }
  return result;
}

}  // namespace tessera
