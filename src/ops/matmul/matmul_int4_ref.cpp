#include "base/checked.hpp"
#include "ops/matmul/linear_ref.hpp"
#include "ops/matmul/matmul_int4.hpp"

namespace tessera {

void MatmulInt4::validate(const Args& args) {
  ops::expect("matmul_int4.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("matmul_int4.y", args.y, {DType::kF32}, {args.x.dim(0), -1});
  ops::require(args.group_size >= 1, "matmul_int4.group_size",
               "expected at least 1, got {}; take the group size of the quantiser, often 32",
               args.group_size);
  const int64_t n_in = args.x.dim(1), n_out = args.y.dim(1);
  const auto n_weights = checked_mul(n_in, n_out);
  ops::require(n_weights.has_value(), "matmul_int4.w",
               "expected at most 2^63 weights, got {} x {}; split the layer", n_in, n_out);
  ops::expect("matmul_int4.w", args.w, {DType::kInt4Flat}, {1, round_up<int64_t>(*n_weights, 8)});
  const int64_t n_groups = ceil_div(*n_weights, args.group_size);
  ops::expect("matmul_int4.scales", args.scales, {DType::kF32}, {n_groups});
  ops::expect("matmul_int4.zeros", args.zeros, {DType::kF32}, {n_groups});
  ops::expect_optional("matmul_int4.live", args.live, {DType::kU32}, {1});
}

Cost MatmulInt4::cost(const Args& args) {
  return {
      .flops = 2 * static_cast<double>(args.x.shape.count()) * static_cast<double>(args.y.dim(1)),
      .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.w) + ops::bytes_of(args.scales) +
               ops::bytes_of(args.zeros) + ops::bytes_of(args.y)};
}

void MatmulInt4::reference(const Args& args) {
  const ref::Matrix x = ref::read_rows(args.x, ref::live_rows(args.live, args.x.dim(0)));
  const ref::Values scales = ref::read_vector(args.scales), zeros = ref::read_vector(args.zeros);
  const int64_t n_in = args.x.dim(1), n_out = args.y.dim(1);
  ref::Matrix y(x.size(), ref::Values(static_cast<size_t>(n_out), 0.0));
  for (int64_t k = 0; k < n_in; ++k) {
    for (int64_t n = 0; n < n_out; ++n) {
      const int64_t i = k * n_out + n;
      const auto group = static_cast<size_t>(i / args.group_size);
      const double weight = (ref::read_nibble(args.w, i) - zeros[group]) * scales[group];
      for (size_t m = 0; m < x.size(); ++m) {
        y[m][static_cast<size_t>(n)] += x[m][static_cast<size_t>(k)] * weight;
      }
    }
  }
  ref::write_rows(args.y, y);
}

}  // namespace tessera
