// The loop that all element-wise kernels share. `F` is a function of one or two vectors.

#include "cpu/simd.hpp"
#include "ops/elementwise/elementwise_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

/// A chunk is some 2048 values: 8 KiB a tensor, so that operands stay in the L1 cache and taking a
/// chunk (an atomic operation) costs little beside the work.
constexpr int64_t kChunkValues = 2048;

inline Vec apply(Vec (*f)(Vec), Vec a, Vec) {
  return f(a);
}
inline Vec apply(Vec (*f)(Vec, Vec), Vec a, Vec b) {
  return f(a, b);
}

template <auto F>
inline void for_each_value(const ElementwiseArgs& args, Team& team) {
  constexpr bool kUnary = requires(Vec a) {
    F(a);
  };
  const int64_t n_rows = live_rows(args.live, args.y.n_rows), n_cols = args.y.n_cols;
  const int64_t chunk_cols = min_of(n_cols, kChunkValues);
  if (chunk_cols == 0) return;
  const int64_t chunk_rows = max_of(1, kChunkValues / chunk_cols);
  const int64_t n_across = chunks_of(n_cols, chunk_cols);
  const int64_t n_chunks = chunks_of(n_rows, chunk_rows) * n_across;
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t row_begin = chunk / n_across * chunk_rows;
    const int64_t row_end = min_of(row_begin + chunk_rows, n_rows);
    const int64_t col_begin = chunk % n_across * chunk_cols;
    const int64_t col_end = min_of(col_begin + chunk_cols, n_cols);
    for (int64_t i_row = row_begin; i_row < row_end; ++i_row) {
      float* y = row_of<float>(args.y, i_row);
      const float* a = row_of<const float>(args.a, i_row);
      const float* b = kUnary ? a : row_of<const float>(args.b, i_row);
      int64_t i = col_begin;
      for (; i + kLanes <= col_end; i += kLanes) store(y + i, apply(F, load(a + i), load(b + i)));
      const int64_t rest = col_end - i;
      if (rest > 0) {
        store_first(y + i, apply(F, load_first(a + i, rest), load_first(b + i, rest)), rest);
      }
    }
  }
}

inline Vec silu(Vec x) {
  return x / (1.0f + exp(-x));
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
