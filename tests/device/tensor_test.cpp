#include "tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"

namespace tessera {
namespace {

TEST(DType, RowBytesKnowsBlocksAndOverflow) {
  EXPECT_EQ(row_bytes(DType::kF32, 3), 12);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 576), 576 / 32 * 20);
  EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 2 * 210);
  EXPECT_EQ(row_bytes(DType::kQ4_K, 576), std::nullopt);
  EXPECT_EQ(row_bytes(DType::kF32, -1), std::nullopt);
  EXPECT_EQ(row_bytes(DType::kF32, std::numeric_limits<int64_t>::max() / 2), std::nullopt);
}

TEST(DType, NamesGoBothWays) {
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("q9_z"), std::nullopt);
  EXPECT_EQ(dtype_from_name("none"), std::nullopt);
}

TEST(Tensor, StridesAreInBytesAndSlicesShareThem) {
  const Tensor tensor = Tensor::dense(DType::kQ8_0, {4, 3, 64});
  EXPECT_EQ(tensor.stride_bytes[1], 68);
  EXPECT_EQ(tensor.stride_bytes[0], 204);
  EXPECT_EQ(tensor.span_bytes(), 4 * 204);
  EXPECT_EQ(tensor.n_rows(), 12);
  const Tensor part = tensor.slice(1, 2);
  EXPECT_EQ(part.offset_bytes, 204);
  EXPECT_EQ(part.span_bytes(), 2 * 204);
  Tensor padded = tensor;
  padded.stride_bytes[0] = 256;
  EXPECT_FALSE(padded.is_dense());
  EXPECT_EQ(padded.span_bytes(), 3 * 256 + 204);
}

TEST(Tensor, BlockFormatsNeedWholeBlocks) {
  EXPECT_THROW(Tensor::dense(DType::kQ4_0, {2, 33}), Error);
}

TEST(Shape, CountIsCheckedAndPrinted) {
  EXPECT_EQ(Shape({1 << 30, 1 << 30, 1 << 30}).checked_count(), std::nullopt);
  EXPECT_EQ(Shape({3, 0}).checked_count(), 0);
  EXPECT_EQ(Shape({3, 576}).to_string(), "[3, 576]");
}

}  // namespace
}  // namespace tessera
