// The product with the seeds' flat int4 weights: panels of [K, N] decoded to f32.

#include "ops/matmul/columns_product.inl"
#include "ops/matmul/matmul_int4_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {
namespace columns {

struct Int4Source {
  const MatmulInt4CpuArgs& args;

  float nibble(int64_t i) const { return static_cast<float>((args.w[i / 2] >> (i % 2 * 4)) & 15); }

  /// Values i_begin to i_begin + n of the flat matrix, all of one group.
  void decode_run(int64_t i_begin, int64_t n, float zero, float scale, float* target) const {
    int64_t i = 0;
    if (i_begin % 2 != 0 && n > 0) {
      target[0] = (nibble(i_begin) - zero) * scale;
      i = 1;
    }
    // Bytes of two nibbles each, kLanes at a time, doubled: lane 2 j and 2 j + 1 see byte j.
    for (; i + kLanes <= n; i += kLanes) {
      const unsigned char* bytes = args.w + (i_begin + i) / 2;
      uint8_t pairs[kLanes];
      for (int j = 0; j < kLanes; ++j) {
        pairs[j] = static_cast<uint8_t>(bytes[j / 2] >> (j % 2 * 4));
      }
      store(target + i, (to_float(load_u8(pairs) & 15) - splat(zero)) * splat(scale));
    }
    for (; i < n; ++i) target[i] = (nibble(i_begin + i) - zero) * scale;
  }

  Panel in_place(const Block&) const { return {}; }
  void pack(const Block& block, int64_t width, float* panels) const {
    pack_rows(block, width, panels, [&](int64_t k, int64_t col, int64_t n_cols, float* target) {
      const int64_t begin = k * args.y.n_cols + col;
      int64_t i_group = begin / args.group_size;
      int64_t group_end = (i_group + 1) * args.group_size;
      for (int64_t i = begin; i < begin + n_cols; ++i_group, group_end += args.group_size) {
        const int64_t end = min_of(group_end, begin + n_cols);
        decode_run(i, end - i, args.zeros[i_group], args.scales[i_group], target + (i - begin));
        i = end;
      }
    });
  }
  void copy_activations(int64_t i_token, int64_t k_begin, int64_t n, float* target) const {
    memcpy(target, row_of<const float>(args.x, i_token) + k_begin,
           static_cast<size_t>(n) * sizeof(float));
  }
  void finish(int64_t, int64_t, int64_t) const {}
};

}  // namespace columns
}  // namespace

void matmul_int4(const MatmulInt4CpuArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows);
  const columns::Int4Source source = {args};
  if (n_tokens <= columns::kFewTokens) {
    columns::multiply_few(source, args.y, n_tokens, args.x.n_cols, team);
  } else {
    columns::multiply_many(source, args.y, n_tokens, args.x.n_cols, args.scratch, team);
  }
}

}  // namespace tessera::TESSERA_ISA
