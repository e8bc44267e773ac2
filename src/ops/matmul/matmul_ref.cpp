#include "ops/matmul/matmul.hpp"

#include "ops/matmul/compose.hpp"
#include "ops/matmul/linear_ref.hpp"
#include "ops/quantize/quantize_ref.hpp"

namespace tessera {
namespace {

/// y[m, n] = sum_k x[m, k] w[n, k].
void multiply_out_in(const ref::Matrix& x, const Tensor& w, ref::Matrix& y) {
  for (size_t n = 0; n < static_cast<size_t>(w.dim(0)); ++n) {
    const ref::Values weights = ref::read_row(w, static_cast<int64_t>(n));
    for (size_t m = 0; m < x.size(); ++m) {
      double sum = 0;
      for (size_t k = 0; k < weights.size(); ++k) sum += x[m][k] * weights[k];
      y[m][n] = sum;
    }
  }
}

/// y[m, n] = sum_k x[m, k] w[k, n], w read row by row.
void multiply_in_out(const ref::Matrix& x, const Tensor& w, ref::Matrix& y) {
  for (size_t k = 0; k < static_cast<size_t>(w.dim(0)); ++k) {
    const ref::Values weights = ref::read_row(w, static_cast<int64_t>(k));
    for (size_t m = 0; m < x.size(); ++m) {
      for (size_t n = 0; n < weights.size(); ++n) y[m][n] += x[m][k] * weights[n];
    }
  }
}

}  // namespace

ref::Matrix ref::linear(const Matrix& x, const Linear& layer) {
  const bool out_in = layer.order == WeightOrder::kOutIn;
  const auto n_out = static_cast<size_t>(layer.w.dim(out_in ? 0 : 1));
  Matrix y(x.size(), Values(n_out, 0.0));
  out_in ? multiply_out_in(x, layer.w, y) : multiply_in_out(x, layer.w, y);
  const Values bias = layer.bias.defined() ? read_vector(layer.bias) : Values(n_out, 0.0);
  for (size_t m = 0; m < x.size(); ++m) {
    const Values residual = layer.residual.defined()
                                ? read_row(layer.residual, static_cast<int64_t>(m))
                                : Values(n_out, 0.0);
    for (size_t n = 0; n < n_out; ++n) y[m][n] += bias[n] + residual[n];
  }
  return y;
}

void ref::write_rows(const Tensor& y, const Matrix& rows) {
  for (size_t m = 0; m < rows.size(); ++m) write_row(y, static_cast<int64_t>(m), rows[m]);
}

ref::Matrix ref::seen_by(const Tensor& w, Activations activations, const Matrix& rows) {
  if (!takes_q8(w, activations)) return rows;
  Matrix quantised;
  for (const Values& row : rows) quantised.push_back(through_q8(row));
  return quantised;
}

int64_t ref::check_weight(std::string_view what, const Tensor& w, int64_t k, WeightOrder order) {
  ops::expect(what, w, ops::kWeightTypes, {-1, -1});
  const bool out_in = order == WeightOrder::kOutIn;
  ops::require(out_in || !is_block_format(w.dtype), what,
               "expected f32, f16 or bf16 for [in_features, out_features], got {}; block formats "
               "exist only as [out_features, in_features]",
               name(w.dtype));
  ops::require(
      w.dim(out_in ? 1 : 0) == k, what,
      "expected shape {}, got {}; x has {} columns (the order of the weight is {})",
      out_in ? fmt::format("[*, {}]", k) : fmt::format("[{}, *]", k), w.shape.to_string(), k,
      out_in ? "kOutIn: [out_features, in_features]" : "kInOut: [in_features, out_features]");
  const DTypeInfo& type = info(w.dtype);
  ops::require(k % type.block_size == 0, what,
               "expected rows of whole {} blocks of {} values, got {} columns; store this weight "
               "in a format with smaller blocks, or in f16",
               type.name, type.block_size, k);
  return w.dim(out_in ? 0 : 1);
}

void Matmul::validate(const Args& args) {
  ops::expect("matmul.w", args.w, ops::kWeightTypes, {-1, -1});
  ops::expect("matmul.x", args.x, {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8}, {-1, -1});
  ops::require(args.x.dtype != DType::kQ8 || is_block_format(args.w.dtype), "matmul.x",
               "expected f32, f16 or bf16 with a weight in {}, got q8; plain weights take exact "
               "activations",
               name(args.w.dtype));
  const int64_t n_rows = args.x.dim(0);
  const int64_t n_out = ref::check_weight("matmul.w", args.w, args.x.dim(1), args.order);
  ops::expect("matmul.y", args.y, {DType::kF32}, {n_rows, n_out});
  ops::expect_optional("matmul.bias", args.bias, {DType::kF32}, {n_out});
  ops::expect_optional("matmul.residual", args.residual, {DType::kF32}, {n_rows, n_out});
  ops::expect_optional("matmul.live", args.live, {DType::kU32}, {1});
}

Cost Matmul::cost(const Args& args) {
  return {.flops = ref::linear_flops(args.x.dim(0), args.w),
          .bytes = ops::bytes_of(args.w) + ops::bytes_of(args.x) + ops::bytes_of(args.y) +
                   ops::bytes_of(args.bias) + ops::bytes_of(args.residual)};
}

void Matmul::reference(const Args& args) {
  const ref::Matrix x = ref::read_rows(args.x, ref::live_rows(args.live, args.x.dim(0)));
  ref::write_rows(
      args.y,
      ref::linear(
          x, {.w = args.w, .bias = args.bias, .residual = args.residual, .order = args.order}));
}

}  // namespace tessera
