#pragma once

#include "ops/cpu_views.hpp"
#include "ops/quantize/storage.hpp"

namespace tessera {

/// y [M, N] = x [M, K] w^T (+ bias [N]) (+ residual [M, N]); w [N, K], or [K, N] for
/// matmul_columns. matmul_packed is for many tokens, matmul_rows for any number. bias and
/// residual.data may be null. `x_is_q8`: rows of quantize_rows, x_type means nothing then.
struct MatmulCpuArgs {
  MatrixView y, x, w, residual;
  const float* bias;
  const uint32_t* live;
  Storage x_type, w_type;
  bool x_is_q8;
  float* scratch;  ///< packed_scratch_bytes, for matmul_columns and matmul_packed
};

TESSERA_DECLARE_TIERS(void matmul_rows(const MatmulCpuArgs&, Team&) noexcept;
                      void matmul_packed(const MatmulCpuArgs&, Team&) noexcept;
                      void matmul_columns(const MatmulCpuArgs&, Team&) noexcept;
                      void matmul_q8(const MatmulCpuArgs&, Team&) noexcept)
#if defined(__x86_64__)
namespace avx512vnni {
void matmul_q8(const MatmulCpuArgs&, Team&) noexcept;
}
namespace amx {
void matmul_q8(const MatmulCpuArgs&, Team&) noexcept;
}
#elif defined(__aarch64__)
namespace dotprod {
void matmul_q8(const MatmulCpuArgs&, Team&) noexcept;
}
#endif

/// Rows of w in a chunk where few tokens see them: chunks enough for many threads, yet of several
/// tiles, since only the second one has been prefetched.
static inline int64_t few_tokens_chunk_rows(int64_t n_rows) {
  return n_rows < 512 ? 32 : n_rows < 8192 ? 64 : 128;
}

}  // namespace tessera
