// What ops_test does not reach of the rows of products.

#include <random>

#include "ops/matmul/matmul.hpp"
#include "ops/matmul/matmul_residual_swiglu_a.hpp"
#include "ops/webgpu_row.hpp"
#include "ops/webgpu_rows.hpp"
#include "support.hpp"
#include "tensor/convert.hpp"
#include "webgpu/tuning.hpp"

namespace tessera::webgpu {
namespace {

TEST(WebGpuRows, AWeightThatFitsABindingIsOnePart) {
  Capabilities capabilities;
  capabilities.max_binding_bytes = 1 << 20;
  const Tensor weight = Tensor::dense(DType::kF32, {100, 100});
  ASSERT_TRUE(fits_sliced(weight, capabilities));
  const std::vector<RowSlice> slices = row_slices(weight, capabilities);
  ASSERT_EQ(slices.size(), 1);
  EXPECT_EQ(slices[0].begin, 0);
  EXPECT_EQ(slices[0].count, 100);
}

TEST(WebGpuRows, PartsOfALargeWeightFitWhereverTheyStartAndCoverIt) {
  Capabilities capabilities;
  capabilities.max_binding_bytes = 128 << 20;
  // A head of 1.1 GB, and one whose rows are no multiple of a word.
  for (const auto& [dtype, rows, columns] :
       {std::tuple{DType::kF32, 262'145, 1088}, {DType::kQ8_0, 1'000'003, 288}}) {
    const Tensor weight = Tensor::dense(dtype, {rows, columns});
    ASSERT_TRUE(fits_sliced(weight, capabilities));
    ASSERT_FALSE(fits_binding(weight, capabilities));
    int64_t next = 0;
    for (const RowSlice& slice : row_slices(weight, capabilities)) {
      EXPECT_EQ(slice.begin, next);
      EXPECT_EQ(slice.begin % kRowSliceMultiple, 0);
      EXPECT_TRUE(fits_binding(weight.slice(slice.begin, slice.count), capabilities));
      next += slice.count;
    }
    EXPECT_EQ(next, rows);
  }
}

TEST(WebGpuRows, AWeightWithRowsAsLongAsABindingIsRefused) {
  Capabilities capabilities;
  capabilities.max_binding_bytes = 1 << 20;
  EXPECT_FALSE(fits_sliced(Tensor::dense(DType::kF32, {100, 100'000}), capabilities));
  EXPECT_FALSE(fits_sliced(Tensor::dense(DType::kF32, {1'000'000}), capabilities));
}

/// A matrix that starts `skip` values (whole blocks) into its buffer.
Tensor place(Gpu& gpu, DType dtype, const Shape& shape, int64_t skip, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (float& value : values) value = normal(random);
  const Tensor dense = Tensor::dense(dtype, shape);
  const int64_t skipped = skip * info(dtype).block_bytes;
  std::vector<std::byte> bytes(static_cast<size_t>(skipped + dense.span_bytes()));
  if (dtype == DType::kF32) {
    std::memcpy(&bytes[static_cast<size_t>(skipped)], values.data(), values.size() * 4);
  } else {
    encode(dtype, values.data(), &bytes[static_cast<size_t>(skipped)], shape.count());
  }
  const Tensor buffer = gpu.tensor(DType::kI8, {static_cast<int64_t>(bytes.size())}, bytes);
  return Tensor::dense(dtype, shape, buffer.buffer, skipped);
}

template <typename Op>
const Row<Op>& row_named(const KernelTable& table, std::string_view name) {
  for (const Row<Op>& row : table.rows<Op>()) {
    if (row.name == name) return row;
  }
  fail(ErrorKind::kInvalidArgument, std::string(name), "no such row");
}

/// Runs a row with what it asks for of scratch memory.
template <typename Op>
void run_row(Gpu& gpu, const Row<Op>& row, const typename Op::Args& args) {
  Tensor scratch;
  if (row.scratch_bytes && row.scratch_bytes(args) > 0) {
    scratch = gpu.empty(DType::kI8, {row.scratch_bytes(args)});
  }
  gpu.queue().begin();
  row.run(gpu.queue(), args, scratch);
  const auto step = gpu.queue().end();
  gpu.queue().submit(*step);
  gpu.queue().wait().value();
}

// ops_test places every tensor at an odd address, so that tiles are loaded value by value. Here the
// same rows load fours, with every configuration; they promise the same bits.
TEST(WebGpuRows, TilesHaveTheSameBitsWhereverTensorsStart) {
  TESSERA_NEEDS_ADAPTER();
  constexpr int64_t kRows = 70, kColumns = 132;
  struct Product {
    DType x, w;
    WeightOrder order;
    int64_t depth;  // whole steps, or not
  };
  for (const Tuning& tuning : single_tunings()) {
    Gpu gpu({.tuning = &tuning});
    KernelTable table;
    add_webgpu_rows(table, gpu.capabilities());
    const auto& row = row_named<Matmul>(table, "tile");
    for (const Product& p : {Product{DType::kF32, DType::kF32, WeightOrder::kOutIn, 96},
                             {DType::kF16, DType::kF16, WeightOrder::kOutIn, 100},
                             {DType::kBF16, DType::kBF16, WeightOrder::kInOut, 96}}) {
      const bool out_in = p.order == WeightOrder::kOutIn;
      std::vector<float> first;
      for (const int64_t skip : {0, 1, 64}) {
        const Matmul::Args args = {
            .y = place(gpu, DType::kF32, {kRows, kColumns}, skip, 1),
            .x = place(gpu, p.x, {kRows, p.depth}, skip, 2),
            .w = place(gpu, p.w, out_in ? Shape{kColumns, p.depth} : Shape{p.depth, kColumns}, skip,
                       3),
            .residual = place(gpu, DType::kF32, {kRows, kColumns}, skip, 4),
            .order = p.order};
        run_row(gpu, row, args);
        const std::vector<float> got = gpu.values<float>(args.y);
        if (skip == 0) first = got;
        EXPECT_TRUE(got == first) << tuning.name << ", " << name(p.w) << ", " << skip;
        EXPECT_NE(got, gpu.values<float>(args.residual));
      }
    }
  }
}

TEST(WebGpuRows, TheGateIsAppliedWhileLoadingInOneDispatchWithoutMemory) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  MatmulResidualSwigluA::Args args = {.y = gpu.empty(DType::kF32, {512, 768}),
                                      .g = gpu.empty(DType::kF32, {512, 3072}),
                                      .u = gpu.empty(DType::kF32, {512, 3072}),
                                      .w = gpu.empty(DType::kF32, {3072, 768})};
  // The row that is picked asks the arena for nothing: no [tokens, d_ff] buffer anywhere.
  Arena arena(gpu.device());
  PlanQueue plan(gpu.device(), table, arena);
  plan.begin();
  matmul_residual_swiglu_a(plan, args);
  ASSERT_EQ(plan.records().size(), 1);
  EXPECT_FALSE(plan.records()[0].composed);
  EXPECT_EQ(arena.size_bytes(), 0);

  args = {.y = place(gpu, DType::kF32, {5, 8}, 0, 1),
          .g = place(gpu, DType::kF32, {5, 12}, 0, 2),
          .u = place(gpu, DType::kF32, {5, 12}, 0, 3),
          .w = place(gpu, DType::kF32, {12, 8}, 0, 4)};
  gpu.queue().begin();
  table.pick<MatmulResidualSwigluA>(args, gpu.device().caps()).run(gpu.queue(), args, {});
  const auto step = gpu.queue().end();
  EXPECT_EQ(static_cast<const GpuStep&>(*step).dispatches.size(), 1);
}

TEST(WebGpuRows, AHeadAboveTheBindingLimitIsMultipliedInParts) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu({.default_limits = true});
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  // 144 MiB of f16, where a binding has at most 128.
  constexpr int64_t kColumns = 73'728, kDepth = 1024;
  const Tensor w = gpu.empty(DType::kF16, {kColumns, kDepth});
  ASSERT_FALSE(fits_binding(w, gpu.capabilities()));
  // Row i of w is all zeros but for a value at i % depth.
  std::vector<std::byte> bytes(static_cast<size_t>(w.span_bytes()));
  for (int64_t i = 0; i < kColumns; ++i) {
    bytes[static_cast<size_t>((i * kDepth + i % kDepth) * 2 + 1)] = std::byte{0x3c};  // 1.0
  }
  write_tensor(w, bytes);
  const Tensor x = place(gpu, DType::kF32, {3, kDepth}, 0, 1);
  const Matmul::Args args = {.y = gpu.empty(DType::kF32, {3, kColumns}), .x = x, .w = w};
  for (const std::string_view name : {"tile", "teams"}) {
    const auto& row = row_named<Matmul>(table, name);
    ASSERT_TRUE(row.supports(args, gpu.device().caps()));
    run_row(gpu, row, args);
    const std::vector<float> got = gpu.values<float>(args.y), in = gpu.values<float>(x);
    int64_t n_wrong = 0;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t i = 0; i < kColumns; ++i) {
        n_wrong += got[static_cast<size_t>(r * kColumns + i)] !=
                   in[static_cast<size_t>(r * kDepth + i % kDepth)];
      }
    }
    EXPECT_EQ(n_wrong, 0) << name;
  }
}

}  // namespace
}  // namespace tessera::webgpu
