#include "bench/fixed_cases.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tessera::bench {
namespace {

constexpr int64_t kValues = int64_t{64} << 20;

TEST(FixedCases, EveryEntryOfTheTableIsTimed) {
  std::set<std::string> timed, table;
  for (const FixedCase& c : fixed_cases(kValues)) timed.insert(c.kernel->label());
  for (const webgpu::FixedKernel& kernel : webgpu::fixed_kernels()) table.insert(kernel.label());
  EXPECT_EQ(timed, table);
}

TEST(FixedCases, EveryCaseIsOneThatItsEntryTakes) {
  for (const FixedCase& c : fixed_cases(kValues)) {
    SCOPED_TRACE(c.kernel->label() + " " + c.shape);
    EXPECT_EQ(c.counts.size(), c.kernel->bindings.size());
    EXPECT_NO_THROW(webgpu::fixed_grid(*c.kernel, c.uniform));
    for (size_t i = 0; i < c.counts.size(); ++i) {
      const webgpu::FixedType type = c.kernel->bindings[i].type;
      const bool is_vec4 =
          type == webgpu::FixedType::kVec4F32 || type == webgpu::FixedType::kVec4F16;
      EXPECT_EQ(c.counts[i] % (is_vec4 ? 4 : 1), 0);
      EXPECT_GT(c.counts[i], 0);
    }
  }
}

// Twice the values and the weight once; twice the rows looked up and their ids.
TEST(FixedCases, BytesAreTheLeastTraffic) {
  for (const FixedCase& c : fixed_cases(kValues)) {
    if (c.kernel->label() == "rmsnorm:main" && c.uniform[1] == 4096) {
      EXPECT_EQ(c.bytes, (2.0 * kValues + 4096) * 4);
    }
    if (c.kernel->label() == "embedding:main" && c.uniform[1] == 4096) {
      EXPECT_EQ(c.bytes, (2.0 * kValues + kValues / 4096) * 4);
    }
    if (c.kernel->name == "attention" && c.uniform[0] == 4096) {  // about half of 4 T S d H
      EXPECT_NEAR(c.flops, 2.0 * 4096 * 4096 * 64 * 16, 0.001 * c.flops);
    }
  }
}

}  // namespace
}  // namespace tessera::bench
