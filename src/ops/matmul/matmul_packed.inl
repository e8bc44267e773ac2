// y = x w^T for many tokens, exact activations and weights [N, K] of any type: rows of w are turned
// into panels of columns.

#include "ops/matmul/columns_product.inl"
#include "ops/matmul/matmul_x.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

/// w [N, K].
struct TransposedSource {
  const MatmulCpuArgs& args;

  void pack(const Block& block, int64_t, float* panels) const {
    for (int64_t col = 0; col < block.n_cols; col += kPanelCols) {
      pack_panel(block, col, panels + col * block.n);
    }
  }
  void copy_activations(int64_t i_token, int64_t k_begin, int64_t n, float* target) const {
    copy_exact_activations(args, i_token, k_begin, n, target);
  }
  void finish(int64_t i_token, int64_t col_begin, int64_t n_cols) const {
    add_bias_and_residual(args, i_token, col_begin, n_cols);
  }

 private:
  void pack_panel(const Block& block, int64_t col, float* panel) const {
    static constexpr float kZeros[kPackedSlab] = {};
    alignas(64) float decoded[kPanelCols * kPackedSlab];
    const float* rows[kPanelCols];
    for (int64_t j = 0; j < kPanelCols; ++j) {
      rows[j] = kZeros;
      if (col + j >= block.n_cols) continue;
      const unsigned char* source = row_of<const unsigned char>(args.w, block.col_begin + col + j) +
                                    storage_bytes(args.w_type, block.k_begin);
      const bool in_place = args.w_type == Storage::kF32;
      rows[j] = in_place ? reinterpret_cast<const float*>(source) : decoded + j * kPackedSlab;
      if (!in_place) decode_weights(args.w_type, source, decoded + j * kPackedSlab, block.n);
    }
    for (int64_t k = 0; k < block.n; k += kLanes) {
      const int64_t n = min_of(kLanes, block.n - k);
      for (int64_t j = 0; j < kPanelCols; j += kLanes) {
        Vec square[kLanes];
        for (int i = 0; i < kLanes; ++i) {
          square[i] = n == kLanes ? load(rows[j + i] + k) : load_first(rows[j + i] + k, n);
        }
        transpose(square);
        for (int64_t i = 0; i < n; ++i) store(panel + (k + i) * kPanelCols + j, square[i]);
      }
    }
  }
};

}  // namespace columns
}  // namespace

void matmul_packed(const MatmulCpuArgs& args, Team& team) noexcept {
  columns::multiply_many(columns::TransposedSource{args}, args.y,
                         live_rows(args.live, args.y.n_rows), args.x.n_cols, args.scratch, team);
}

}  // namespace tessera::TESSERA_ISA
