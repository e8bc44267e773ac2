// What ops_test does not reach: it places every tensor at an odd address, so that rows read single
// values. Here the same rows read vec4s; they promise the same bits.

#include <cmath>
#include <random>

#include "ops/elementwise/swiglu.hpp"
#include "ops/embedding/gather_rows.hpp"
#include "ops/matmul/linear_residual.hpp"
#include "ops/matmul/norm_linear_group.hpp"
#include "ops/norm/layernorm.hpp"
#include "ops/norm/rmsnorm.hpp"
#include "ops/rope/rope.hpp"
#include "ops/rope/rope_kv_write.hpp"
#include "ops/softmax/softmax.hpp"
#include "ops/webgpu_rows.hpp"
#include "support.hpp"

namespace tessera::webgpu {
namespace {

std::vector<float> random_values(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

/// A tensor [rows, columns] that starts `skip` values into its buffer.
Tensor place(Gpu& gpu, int64_t rows, int64_t columns, int64_t skip, unsigned seed) {
  std::vector<float> values(static_cast<size_t>(skip));
  const std::vector<float> own = random_values(rows * columns, seed);
  values.insert(values.end(), own.begin(), own.end());
  Tensor tensor = gpu.tensor(DType::kF32, {skip + rows * columns}, values);
  return Tensor::dense(DType::kF32, {rows, columns}, tensor.buffer, skip * 4);
}

/// Returns how many dispatches it took.
template <typename Op>
size_t run(Gpu& gpu, const typename Op::Args& args) {
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  for (const Row<Op>& row : table.rows<Op>()) {
    if (!row.traits.composed) {
      gpu.queue().begin();
      launch_row<Op>(gpu.queue(), row, args);
      const auto step = gpu.queue().end();
      gpu.queue().submit(*step);
      gpu.queue().wait().value();
      return static_cast<const GpuStep&>(*step).dispatches.size();
    }
  }
  ADD_FAILURE() << "no kernel";
  return 0;
}

/// Rows of x wherever tensors start: `run_row(y, x, skip)` must write y, and the same bits each
/// time.
template <typename RunRow>
void expect_same_bits(Gpu& gpu, std::initializer_list<int64_t> sizes,
                      std::initializer_list<int64_t> skips, RunRow run_row) {
  for (const int64_t d : sizes) {
    std::vector<float> first;
    for (const int64_t skip : skips) {
      const Tensor x = place(gpu, 3, d, skip, 1), y = place(gpu, 3, d, skip, 2);
      run_row(y, x, skip);
      const std::vector<float> got = gpu.values<float>(y);
      if (first.empty()) first = got;
      EXPECT_TRUE(got == first) << d << " values, " << skip << " skipped";
      EXPECT_NE(got, random_values(3 * d, 2));
    }
  }
}

Tensor place_vector(Gpu& gpu, int64_t d, int64_t skip, unsigned seed) {
  Tensor vector = place(gpu, 1, d, skip, seed);
  vector.shape = {d};
  return vector;
}

TEST(WebGpuRows, RmsnormHasTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  expect_same_bits(gpu, {4, 64, 576, 1540, 4096}, {0, 1, 64, 65, 67},
                   [&](const Tensor& y, const Tensor& x, int64_t skip) {
                     const Tensor weight = place_vector(gpu, x.dim(1), skip, 3);
                     run<Rmsnorm>(gpu, {.y = y, .x = x, .weight = weight});
                   });
}

TEST(WebGpuRows, LayernormHasTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  expect_same_bits(gpu, {4, 256, 576, 1540, 4100}, {0, 1, 64},
                   [&](const Tensor& y, const Tensor& x, int64_t skip) {
                     const Tensor weight = place_vector(gpu, x.dim(1), skip, 3);
                     const Tensor bias = place_vector(gpu, x.dim(1), skip, 4);
                     run<Layernorm>(gpu, {.y = y, .x = x, .weight = weight, .bias = bias});
                   });
}

TEST(WebGpuRows, SoftmaxHasTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  expect_same_bits(
      gpu, {4, 256, 576, 1540, 4100}, {0, 1, 64},
      [&](const Tensor& y, const Tensor& x, int64_t) { run<Softmax>(gpu, {.y = y, .x = x}); });
}

TEST(WebGpuRows, RopeIsTheSameWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  constexpr int64_t kTokens = 3, kHeads = 3, kHeadDim = 24, kPairs = 8;  // 8 values pass through
  for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalfSplit}) {
    std::vector<float> first;
    for (const int64_t skip : {0, 1, 64}) {
      Tensor q = place(gpu, kTokens * kHeads, kHeadDim, skip, 1);
      Tensor k = place(gpu, kTokens, kHeadDim, skip, 2);
      Tensor rotation = place(gpu, kTokens * kPairs, 2, skip, 3);
      q = q.reshaped({kTokens, kHeads, kHeadDim});
      k = k.reshaped({kTokens, 1, kHeadDim});
      rotation = rotation.reshaped({kTokens, kPairs, 2});
      run<Rope>(gpu, {.q = q, .k = k, .rotation = rotation, .pairing = pairing});
      std::vector<float> got = gpu.values<float>(q);
      const std::vector<float> got_k = gpu.values<float>(k);
      EXPECT_NE(got_k, random_values(kTokens * kHeadDim, 2));
      got.insert(got.end(), got_k.begin(), got_k.end());
      if (skip == 0) first = got;
      ASSERT_EQ(got.size(), first.size());
      for (size_t i = 0; i < got.size(); ++i) {  // drivers may fuse a product and a sum, or not
        EXPECT_NEAR(got[i], first[i], 1e-6 * (1 + std::abs(first[i]))) << skip << " skipped";
      }
    }
  }
}

// 144 MiB, which default limits do not bind at once: a dispatch for each part that they do.
TEST(WebGpuRows, GatherRowsReadsATableAboveTheBindingLimit) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu({.default_limits = true});
  constexpr int64_t kRows = 36864, kColumns = 1024;
  Tensor table;
  try {
    table = gpu.empty(DType::kF32, {kRows, kColumns});
  } catch (const Error& error) {
    GTEST_SKIP() << "no memory for a table of 144 MiB: " << error.what();
  }
  ASSERT_GT(table.span_bytes(), gpu.capabilities().max_binding_bytes);
  const std::vector<uint32_t> ids = {0, 36863, 5, 32000, 36864, 0xffffffff, 33000};
  const auto n_ids = static_cast<int64_t>(ids.size());
  for (const uint32_t id : ids) {
    if (id >= kRows) continue;
    const std::vector<float> row = random_values(kColumns, id);
    write_tensor(table.slice(id, 1), std::as_bytes(std::span(row)));
  }
  const Tensor y = gpu.tensor(DType::kF32, {n_ids, kColumns}, random_values(n_ids * kColumns, 77));
  EXPECT_EQ(
      run<GatherRows>(gpu, {.y = y, .table = table, .ids = gpu.tensor(DType::kU32, {n_ids}, ids)}),
      2u);
  const std::vector<float> got = gpu.values<float>(y);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> expected =
        ids[i] < kRows ? random_values(kColumns, ids[i]) : std::vector<float>(kColumns);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin() + i * kColumns)) << i;
  }
}

/// Rotation, positions, sequences, block tables and live, in a buffer each or all in one.
std::vector<float> kv_write(Gpu& gpu, bool one_buffer, std::vector<float>& pages) {
  constexpr int64_t kTokens = 3, kHeads = 2, kHeadDim = 8, kPairs = 4;
  const std::vector<float> rotation = random_values(kTokens * kPairs * 2, 4);
  const std::vector<uint32_t> rows = {4, 5, 0}, sequences = {1, 1, 0}, tables = {2, 7, 0, 1};
  std::vector<uint32_t> words(64, 0xdeadbeef);  // what no field should read
  std::memcpy(&words[5], rotation.data(), rotation.size() * 4);
  std::copy(rows.begin(), rows.end(), &words[32]);
  std::copy(sequences.begin(), sequences.end(), &words[36]);
  std::copy(tables.begin(), tables.end(), &words[48]);
  words[56] = 2;
  const Tensor state = gpu.tensor(DType::kU32, {64}, words);
  const auto field = [&](DType dtype, const Shape& shape, int64_t word) {
    const Tensor inside = Tensor::dense(dtype, shape, state.buffer, 4 * word);
    if (one_buffer) return inside;
    const Tensor own = gpu.empty(dtype, shape);
    write_tensor(own, read_tensor(inside));
    return own;
  };
  RopeKvWrite::Args args = {
      .q = gpu.tensor(DType::kF32, {kTokens, kHeads, kHeadDim}, random_values(48, 1)),
      .k_pages = gpu.tensor(DType::kF32, {3, 1, 4, kHeadDim}, std::vector<float>(96)),
      .v_pages = gpu.tensor(DType::kF32, {3, 1, 4, kHeadDim}, std::vector<float>(96)),
      .k = gpu.tensor(DType::kF32, {kTokens, 1, kHeadDim}, random_values(24, 2)),
      .v = gpu.tensor(DType::kF32, {kTokens, 1, kHeadDim}, random_values(24, 3)),
      .rotation = field(DType::kF32, {kTokens, kPairs, 2}, 5),
      .positions = field(DType::kU32, {kTokens}, 32),
      .sequences = field(DType::kI32, {kTokens}, 36),
      .block_tables = field(DType::kU32, {2, 2}, 48),
      .live = field(DType::kU32, {1}, 56)};
  RopeKvWrite::validate(args);
  const bool all_at_once = one_buffer || gpu.capabilities().max_storage_buffers >= 10;
  EXPECT_EQ(run<RopeKvWrite>(gpu, args), all_at_once ? 1u : 3u);
  pages = gpu.values<float>(args.k_pages);
  const std::vector<float> v_pages = gpu.values<float>(args.v_pages);
  pages.insert(pages.end(), v_pages.begin(), v_pages.end());
  return gpu.values<float>(args.q);
}

// On a device of default limits, separate fields are more buffers than one kernel binds.
TEST(WebGpuRows, RopeKvWriteIsTheSameFromOneBufferAndFromMany) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu, core({.default_limits = true});
  std::vector<float> pages, expected_pages;
  const std::vector<float> expected = kv_write(gpu, false, expected_pages);
  EXPECT_NE(expected, random_values(48, 1));
  EXPECT_NE(expected_pages, std::vector<float>(192));
  for (Gpu* device : {&gpu, &core}) {
    for (const bool one_buffer : {false, true}) {
      EXPECT_EQ(kv_write(*device, one_buffer, pages), expected) << one_buffer;
      EXPECT_EQ(pages, expected_pages) << one_buffer;
    }
  }
}

TEST(WebGpuRows, SwigluHasTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  std::vector<float> first;
  for (const int64_t skip : {0, 3, 64, 66}) {
    const Tensor gate = place(gpu, 5, 132, skip, 1), up = place(gpu, 5, 132, skip, 2);
    const Tensor y = place(gpu, 5, 132, skip, 3);
    run<Swiglu>(gpu, {.y = y, .gate = gate, .up = up});
    const std::vector<float> got = gpu.values<float>(y);
    if (skip == 0) first = got;
    EXPECT_TRUE(got == first) << skip << " skipped";
    EXPECT_NE(got, random_values(5 * 132, 3));
  }
}

/// A weight of random bytes that starts `skip` bytes into its buffer. All bytes are below 0x40, so
/// that values are finite, and halves below 2, in every storage type.
Tensor place_weight(Gpu& gpu, DType dtype, int64_t rows, int64_t columns, int64_t skip) {
  Tensor weight = Tensor::dense(dtype, {rows, columns});
  std::mt19937 random(7);
  std::vector<std::byte> bytes(static_cast<size_t>(skip + weight.span_bytes()));
  for (size_t i = static_cast<size_t>(skip); i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(random() & 0x3f);
  }
  bytes.resize((bytes.size() + 3) / 4 * 4);
  const Tensor whole = gpu.empty(DType::kU32, {static_cast<int64_t>(bytes.size()) / 4});
  write_tensor(whole, bytes);
  return Tensor::dense(dtype, {rows, columns}, whole.buffer, skip);
}

/// Few rows read whole vec4s of plain weights, and words of blocks, where these are aligned.
TEST(WebGpuRows, ProductsOfFewRowsHaveTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_1, DType::kQ4_K}) {
    std::vector<float> first;
    for (const int64_t skip : {0, 2}) {
      const Tensor x = place(gpu, 2, 512, skip, 1), residual = place(gpu, 2, 37, skip, 2);
      const Tensor y = place(gpu, 2, 37, skip, 3);
      run<LinearResidual>(
          gpu, {.y = y,
                .x = x,
                .w = place_weight(gpu, dtype, 37, 512, dtype == DType::kF32 ? 2 * skip : skip),
                .residual = residual});
      const std::vector<float> got = gpu.values<float>(y);
      if (skip == 0) first = got;
      EXPECT_TRUE(got == first) << name(dtype);
      EXPECT_NE(got, random_values(2 * 37, 3));
    }
  }
}

/// What a batch gives is what its rows give alone.
TEST(WebGpuRows, NormalisedProductsDoNotDependOnTheOtherRows) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor x = place(gpu, 8, 576, 0, 1);
  Tensor norm_weight = place(gpu, 1, 576, 0, 2);
  norm_weight.shape = {576};
  const Tensor w = place(gpu, 40, 576, 0, 4);
  std::vector<float> first;
  for (const int64_t m : {8, 1, 3}) {
    const Tensor y = gpu.empty(DType::kF32, {m, 40});
    run<NormLinearGroup>(gpu, {.y = {y}, .x = x.slice(0, m), .norm_weight = norm_weight, .w = {w}});
    const std::vector<float> got = gpu.values<float>(y);
    if (first.empty()) first = got;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), first.begin())) << m << " rows";
    EXPECT_NE(got[0], 0.0f);
  }
}

}  // namespace
}  // namespace tessera::webgpu
