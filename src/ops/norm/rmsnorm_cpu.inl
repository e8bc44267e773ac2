#include "ops/norm/norm_cpu.inl"

namespace tessera::TESSERA_ISA {

void rmsnorm_rows(const NormArgs& args, Team& team) noexcept {
  const int64_t n = args.x.n_cols;
  for_each_live_row(args, team, [&](int64_t i_row) {
    const float* x = row_of<const float>(args.x, i_row);
    float* y = row_of<float>(args.y, i_row);
    const float mean_square = sum_of<plus_square>(x, n) / static_cast<float>(n);
    const Vec scale = splat(inverse_root(mean_square + args.eps));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      store(y + i, load(x + i) * scale * load(args.weight + i));
    }
    if (i < n) {
      const Vec result = load_first(x + i, n - i) * scale * load_first(args.weight + i, n - i);
      store_first(y + i, result, n - i);
    }
  });
}

}  // namespace tessera::TESSERA_ISA
