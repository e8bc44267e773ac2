// ops_test places every tensor at an odd address, where the attention rows read single values. Here
// they read vec4s; they promise the same bits.

#include <random>

#include "ops/attention/attention.hpp"
#include "ops/webgpu_rows.hpp"
#include "support.hpp"
#include "tensor/convert.hpp"

namespace tessera::webgpu {
namespace {

/// Random values that start `skip` values into their buffer.
Tensor place(Gpu& gpu, DType dtype, const Shape& shape, int64_t skip, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto n = static_cast<size_t>(shape.count());
  const auto gap = static_cast<size_t>(skip);
  Tensor whole;
  if (dtype == DType::kF16) {
    std::vector<uint16_t> values(gap + n);
    for (size_t i = gap; i < gap + n; ++i) values[i] = f32_to_f16(normal(random));
    whole = gpu.tensor(dtype, {static_cast<int64_t>(gap + n)}, values);
  } else {
    std::vector<float> values(gap + n);
    for (size_t i = gap; i < gap + n; ++i) values[i] = normal(random);
    whole = gpu.tensor(dtype, {static_cast<int64_t>(gap + n)}, values);
  }
  return Tensor::dense(dtype, shape, whole.buffer, skip * info(dtype).block_bytes);
}

std::vector<float> run(Gpu& gpu, const KernelTable& table, const Row<Attention>& row,
                       const Attention::Args& args) {
  Arena arena(gpu.device());
  PlanQueue plan(gpu.device(), table, arena);
  launch_row(plan, row, args);
  arena.allocate();
  const std::unique_ptr<Queue> queue = gpu.device().make_queue(table, arena);
  queue->begin();
  launch_row(*queue, row, args);
  const std::unique_ptr<Step> step = queue->end();
  queue->submit(*step);
  queue->wait().value();
  return gpu.values<float>(args.y);
}

TEST(WebGpuAttentionRows, HaveTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  constexpr int64_t kQueries = 40, kKeys = 150;
  int n_compared = 0;
  for (const Row<Attention>& row : table.rows<Attention>()) {
    if (row.traits.composed) continue;
    for (const DType kv : {DType::kF32, DType::kF16}) {
      for (const int64_t head_dim : {64, 80}) {
        std::vector<float> first;
        for (const int64_t skip : {0, 1}) {
          const Attention::Args args = {
              .y = place(gpu, DType::kF32, {kQueries, 6, head_dim}, skip, 1),
              .q = place(gpu, DType::kF32, {kQueries, 6, head_dim}, skip, 2),
              .k = place(gpu, kv, {kKeys, 2, head_dim}, skip, 3),
              .v = place(gpu, kv, {kKeys, 2, head_dim}, skip, 4),
              .scale = 0.125f,
              .position_offset = kKeys - kQueries};
          const std::vector<float> before = gpu.values<float>(args.y);
          const std::vector<float> got = run(gpu, table, row, args);
          EXPECT_NE(got, before);
          if (skip == 0) {
            first = got;
          } else {
            EXPECT_TRUE(got == first) << row.name << ", " << name(kv) << ", " << head_dim;
            ++n_compared;
          }
        }
      }
    }
  }
  EXPECT_EQ(n_compared, 12);
}

TEST(WebGpuAttentionRows, GiveAQueryTheSameBitsInEveryBatch) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  // Enough queries for tiles of 64 rows, where few have tiles of 16.
  constexpr int64_t kTokens = 3000, kHeads = 12, kHeadDim = 64;
  const Shape shape = {kTokens, kHeads, kHeadDim};
  const Tensor y = place(gpu, DType::kF32, shape, 0, 1), q = place(gpu, DType::kF32, shape, 0, 2);
  const Tensor k = place(gpu, DType::kF16, {kTokens, 1, kHeadDim}, 0, 3);
  const Tensor v = place(gpu, DType::kF16, {kTokens, 1, kHeadDim}, 0, 4);
  for (const Row<Attention>& row : table.rows<Attention>()) {
    if (row.traits.composed) continue;
    std::vector<float> longest;
    for (const int64_t n : {kTokens, int64_t{61}, int64_t{5}, int64_t{1}}) {
      const Attention::Args args = {.y = y.slice(kTokens - n, n),
                                    .q = q.slice(kTokens - n, n),
                                    .k = k,
                                    .v = v,
                                    .scale = 0.125f,
                                    .window = 70,
                                    .position_offset = kTokens - n};
      if (!row.supports(args, gpu.device().caps())) continue;
      const std::vector<float> got = run(gpu, table, row, args);
      if (longest.empty()) longest = got;
      EXPECT_TRUE(std::equal(got.rbegin(), got.rend(), longest.rbegin()))
          << row.name << ", " << n << " queries";
    }
    EXPECT_FALSE(longest.empty()) << row.name;
  }
}

}  // namespace
}  // namespace tessera::webgpu
