// y = x w with exact activations and plain weights [K, N].

#include "ops/matmul/columns_product.inl"
#include "ops/matmul/matmul_x.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

struct PlainSource {
  const MatmulCpuArgs& args;
  bool copy_w;

  Panel panel(int64_t k_begin, int64_t n, int64_t col_begin, int64_t n_cols, int64_t width,
              float* buffer) const {
    const int64_t offset_bytes = storage_bytes(args.w_type, col_begin);
    if (!copy_w && n_cols == width) {
      return {row_of<const float>(args.w, k_begin) + col_begin, args.w.stride_bytes / 4, n};
    }
    for (int64_t k = 0; k < n; ++k) {
      decode_row(args.w_type, row_of<const unsigned char>(args.w, k_begin + k) + offset_bytes,
                 buffer + k * width, n_cols);
      for (int64_t i = n_cols; i < width; ++i) buffer[k * width + i] = 0;
    }
    return {buffer, width, n};
  }
  void copy_activations(int64_t i_token, int64_t k_begin, int64_t n, float* target) const {
    const float* x = activations(args, i_token, k_begin, n, target);
    if (x != target) memcpy(target, x, static_cast<size_t>(n) * sizeof(float));
  }
  void finish(int64_t i_token, int64_t col_begin, int64_t n_cols) const {
    float* y = row_of<float>(args.y, i_token);
    for (int64_t i = col_begin; args.bias && i < col_begin + n_cols; ++i) y[i] += args.bias[i];
    if (!args.residual.data) return;
    const float* residual = row_of<const float>(args.residual, i_token);
    for (int64_t i = col_begin; i < col_begin + n_cols; ++i) y[i] += residual[i];
  }
};

}  // namespace columns
}  // namespace

void matmul_columns(const MatmulCpuArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows);
  // f32 weights are read in place for few tokens, and where rows are whole numbers of values apart.
  const bool copy_w = args.w_type != Storage::kF32 || n_tokens > columns::kFewTokens ||
                      args.w.stride_bytes % 4 != 0;
  columns::multiply(columns::PlainSource{args, copy_w}, args.y, n_tokens, args.x.n_cols, team);
}

}  // namespace tessera::TESSERA_ISA
