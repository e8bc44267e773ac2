#pragma once

#include "ops/op.hpp"

namespace tessera {

/// Where the output features of a weight lie.
enum class WeightOrder : uint8_t {
  kOutIn,  ///< [N, K]: y = x W^T, every storage type
  kInOut,  ///< [K, N]: y = x W, plain types only (the seeds' kernels, training, GPT-2)
};

/// y = x W^T (+ bias) (+ residual), or x W with WeightOrder::kInOut.
///
/// Shapes: x [M, K], w [N, K] or [K, N], bias [N], residual [M, N], y [M, N].
/// Types: x f32, f16, bf16, or q8 with a block-format w; w any weight type; bias, residual and y
/// f32. Accumulates in f32 or wider; products with q8 sum 32 integers exactly, then scale.
/// Aliasing: none. Alignment: none beyond the element's.
/// Determinism: rows of one reduction order give equal bits for every M.
/// live: u32 [1], rows of x and y in use; rows behind it are neither read nor written.
/// Cost: 2 M N K FLOPs; w once, x, y, bias and residual once.
/// Source: BLAS gemm; GGUF block formats in tensor/blocks.hpp.
struct Matmul {
  static constexpr std::string_view kName = "matmul";
  struct Args {
    Tensor y, x, w;
    Tensor bias = {}, residual = {}, live = {};
    WeightOrder order = WeightOrder::kOutIn;
  };
  template <typename A, typename V>
  static void visit(A& args, V&& v) {
    v("y", args.y, Access::kWrite);
    v("x", args.x, Access::kRead);
    v("w", args.w, Access::kRead);
    v("bias", args.bias, Access::kRead);
    v("residual", args.residual, Access::kRead);
    v("live", args.live, Access::kRead);
  }
  static void validate(const Args& args);
  static Cost cost(const Args& args);
  static void reference(const Args& args);
};
inline void matmul(Queue& queue, const Matmul::Args& args) {
  launch<Matmul>(queue, args);
}

}  // namespace tessera
