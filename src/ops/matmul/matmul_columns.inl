// y = x w with exact activations and plain weights [K, N].

#include "ops/matmul/columns_product.inl"
#include "ops/matmul/matmul_x.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

/// w [K, N].
struct PlainSource {
  const MatmulCpuArgs& args;

  Panel in_place(const Block& b) const {
    // f32 rows, a whole number of values apart.
    if (args.w_type != Storage::kF32 || args.w.stride_bytes % 4 != 0) return {};
    return {row_of<const float>(args.w, b.k_begin) + b.col_begin, args.w.stride_bytes / 4, b.n};
  }
  void pack(const Block& block, int64_t width, float* panels) const {
    pack_rows(block, width, panels, [&](int64_t k, int64_t col, int64_t n_cols, float* target) {
      const unsigned char* source =
          row_of<const unsigned char>(args.w, k) + storage_bytes(args.w_type, col);
      if (args.w_type != Storage::kF32 || n_cols % kLanes != 0) {
        return decode_row(args.w_type, source, target, n_cols);
      }
      for (int64_t i = 0; i < n_cols; i += kLanes) {  // a call of memcpy takes longer
        store(target + i, load(reinterpret_cast<const float*>(source) + i));
      }
    });
  }
  void copy_activations(int64_t i_token, int64_t k_begin, int64_t n, float* target) const {
    copy_exact_activations(args, i_token, k_begin, n, target);
  }
  void finish(int64_t i_token, int64_t col_begin, int64_t n_cols) const {
    add_bias_and_residual(args, i_token, col_begin, n_cols);
  }
};

}  // namespace columns
}  // namespace

void matmul_columns(const MatmulCpuArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows);
  const columns::PlainSource source = {args};
  if (n_tokens <= columns::kFewTokens) {
    columns::multiply_few(source, args.y, n_tokens, args.x.n_cols, team);
  } else {
    columns::multiply_many(source, args.y, n_tokens, args.x.n_cols, args.scratch, team);
  }
}

}  // namespace tessera::TESSERA_ISA
