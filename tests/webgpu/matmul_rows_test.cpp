// What ops_test does not reach of the rows of products.

#include <gtest/gtest.h>

#include "ops/webgpu_row.hpp"

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

}  // namespace
}  // namespace tessera::webgpu
