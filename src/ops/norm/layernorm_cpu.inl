#include "ops/norm/norm_cpu.inl"

namespace tessera::TESSERA_ISA {

void layernorm_rows(const NormArgs& args, Team& team) noexcept {
  const int64_t n = args.x.n_cols;
  for_each_live_row(args, team, [&](int64_t i_row) {
    const float* x = row_of<const float>(args.x, i_row);
    float* y = row_of<float>(args.y, i_row);
    // y holds x - mean until the variance is known.
    const Vec mean = splat(sum_of<plus_value>(x, n) / static_cast<float>(n));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i) - mean);
    if (i < n) store_first(y + i, load_first(x + i, n - i) - mean, n - i);

    const float variance = sum_of<plus_square>(y, n) / static_cast<float>(n);
    const Vec scale = splat(inverse_root(variance + args.eps));
    for (i = 0; i < n; i += kLanes) {
      const int64_t count = min_of(kLanes, n - i);
      const Vec bias = args.bias ? load_first(args.bias + i, count) : Vec{};
      const Vec scaled = load_first(y + i, count) * scale * load_first(args.weight + i, count);
      store_first(y + i, scaled + bias, count);
    }
  });
}

}  // namespace tessera::TESSERA_ISA
