// What ops_test does not reach: it places every tensor at an odd address, so that rows read single
// values. Here the same rows read vec4s; they promise the same bits.

#include <random>

#include "ops/elementwise/swiglu.hpp"
#include "ops/matmul/linear_residual.hpp"
#include "ops/matmul/norm_linear_group.hpp"
#include "ops/norm/rmsnorm.hpp"
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

template <typename Op>
void run(Gpu& gpu, const typename Op::Args& args) {
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  for (const Row<Op>& row : table.rows<Op>()) {
    if (!row.traits.composed) {
      gpu.queue().begin();
      launch_row<Op>(gpu.queue(), row, args);
      const auto step = gpu.queue().end();
      gpu.queue().submit(*step);
      gpu.queue().wait().value();
      return;
    }
  }
  ADD_FAILURE() << "no kernel";
}

TEST(WebGpuRows, RmsnormHasTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  for (const int64_t d : {4, 64, 576, 1540, 4096}) {
    std::vector<float> first;
    for (const int64_t skip : {0, 1, 64, 65, 67}) {
      const Tensor x = place(gpu, 3, d, skip, 1), y = place(gpu, 3, d, skip, 2);
      Tensor weight = place(gpu, 1, d, skip, 3);
      weight.shape = {d};
      run<Rmsnorm>(gpu, {.y = y, .x = x, .weight = weight});
      const std::vector<float> got = gpu.values<float>(y);
      if (skip == 0) first = got;
      EXPECT_TRUE(got == first) << d << " values, " << skip << " skipped";
      EXPECT_NE(got, random_values(3 * d, 2));
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
