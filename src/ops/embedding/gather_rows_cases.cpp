#include "ops/embedding/gather_rows.hpp"

#include <fmt/format.h>

#include "ops/cases.hpp"

namespace tessera {

// Decoding rounds at most once: the result is exact in every type.
template <>
std::vector<Case<GatherRows>> cases<GatherRows>() {
  std::vector<Case<GatherRows>> result;
  const auto add = [&](std::string_view kind, DType table, int64_t v, int64_t d,
                       int64_t r) -> Case<GatherRows>& {
    result.push_back(
        {.name = fmt::format("{}{}_{}x{}_{}rows", kind, name(table), v, d, r),
         .args = {.y = f32({r, d}), .table = Tensor::dense(table, {v, d}), .ids = u32({r})},
         .fills = {{"ids", fill::integers(0, v - 1)}}});
    return result.back();
  };
  for (const DType table : ops::kWeightTypes) {
    const int block = info(table).block_size;
    for (const int64_t n : {1, 2, 3, 5}) add("", table, 11, block * n, 7);
    if (block == 1) {
      for (const int64_t d : {7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 576}) {
        add("", table, 5, d, 3);
      }
    }
    add("", table, 5, block * 3, 0);
    add("outside_", table, 5, block * 3, 40).fills["ids"] =
        fill::sprinkled(fill::integers(0, 4), {5, 6, 4294967295.0, 2147483648.0, 1e6}, 2);
    Case<GatherRows>& c = add("all_", table, 9, block * 3, 6);
    c.args.table = with_gap(c.args.table, 1);
    c.args.y = with_gap(c.args.y, 3);
    c.args.live = live_tensor();
    c.fills["live"] = fill::constant(4);
  }
  add("many_", DType::kF32, 70000, 3, 65539).quick = false;
  for (const int64_t r : {1, 512}) {
    for (const DType table : {DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
      Case<GatherRows>& c = add("bench_", table, 49152, 576, r);
      c.quick = c.test = false;
      c.bench = true;
    }
  }
  return result;
}

}  // namespace tessera
