#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/reference.hpp"
#include "ops/sample/top_k.hpp"

namespace tessera {

void TopK::validate(const Args& args) {
  ops::expect("top_k.x", args.x, {DType::kF32}, {-1, -1});
  const int64_t n_rows = args.x.dim(0), n_columns = args.x.dim(1);
  ops::expect("top_k.values", args.values, {DType::kF32}, {n_rows, -1});
  const int64_t k = args.values.dim(1);
  ops::require(k >= 1 && k <= n_columns, "top_k.values",
               "expected 1 <= k <= {} (the columns of x), got k = {}; ask for fewer values",
               n_columns, k);
  ops::expect("top_k.ids", args.ids, {DType::kU32}, {n_rows, k});
  ops::expect_optional("top_k.live", args.live, {DType::kU32}, {1});
}

Cost TopK::cost(const Args& args) {
  return {.flops = static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.values) + ops::bytes_of(args.ids)};
}

void TopK::reference(const Args& args) {
  const auto k = static_cast<size_t>(args.values.dim(1));
  for (int64_t row = 0; row < ref::live_rows(args.live, args.x.dim(0)); ++row) {
    const ref::Values x = ref::read_row(args.x, row);
    std::vector<uint32_t> order(x.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return x[a] > x[b] || (std::isnan(x[b]) && !std::isnan(x[a]));
    });
    order.resize(k);
    ref::Values values;
    for (const uint32_t id : order) values.push_back(x[id]);
    ref::write_row(args.values, row, values);
    ref::write_indices(args.ids, row, order);
  }
}

}  // namespace tessera
