#include "base/checked.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tessera {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Checked, AddAndMultiplyRefuseOverflow) {
  EXPECT_EQ(checked_add<uint64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<uint64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, 1ull << 31), 1ull << 63);
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(-1, std::numeric_limits<int64_t>::min()), std::nullopt);
}

TEST(Checked, CeilDivDoesNotOverflowAtTheTop) {
  EXPECT_EQ(ceil_div<uint64_t>(0, 7), 0u);
  EXPECT_EQ(ceil_div<uint64_t>(7, 7), 1u);
  EXPECT_EQ(ceil_div<uint64_t>(8, 7), 2u);
  EXPECT_EQ(ceil_div<uint64_t>(kMax, 2), 1ull << 63);
}

}  // namespace
}  // namespace tessera
