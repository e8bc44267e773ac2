// The table of the files with a fixed interface: sizes, grids, refusals.

#include "fixed_kernels.hpp"

namespace tessera::webgpu {
namespace {

// ---- the table itself

TEST_F(FixedKernels, CompileOnADeviceWithDefaultLimits) {
  TESSERA_NEEDS_ADAPTER();
  FixedKernelRunner core({.default_limits = true});
  for (const FixedKernel& kernel : fixed_kernels()) {
    if (kernel.needs_f16 || kernel.needs_subgroups) continue;
    EXPECT_NO_THROW(core.pipeline(kernel)) << kernel.label();
  }
}

TEST(FixedKernelTable, UniformsHaveTheSizesOfTheInterface) {
  const auto bytes = [](std::string_view name) { return fixed_kernel(name).uniform_bytes(); };
  EXPECT_EQ(bytes("embedding"), 8);
  EXPECT_EQ(bytes("matmul"), 12);
  EXPECT_EQ(bytes("matmul_int4"), 16);
  EXPECT_EQ(bytes("rmsnorm"), 16);
  EXPECT_EQ(bytes("layernorm"), 16);
  EXPECT_EQ(bytes("rope"), 24);
  EXPECT_EQ(bytes("attention"), 24);
  EXPECT_EQ(bytes("softmax"), 8);
  for (const std::string_view name : {"silu", "gelu", "add", "mul"}) EXPECT_EQ(bytes(name), 4);
  EXPECT_EQ(fixed_kernel("linear", "matmul").uniform_bytes(), 16);
}

void expect_grid(const Grid& grid, int64_t x, int64_t y, int64_t z) {
  EXPECT_EQ(grid.x, x);
  EXPECT_EQ(grid.y, y);
  EXPECT_EQ(grid.z, z);
}

TEST(FixedKernelTable, GridsOfTheInterface) {
  const auto grid = [](std::string_view name, const Words& uniform) {
    return fixed_grid(fixed_kernel(name), uniform);
  };
  expect_grid(grid("embedding", {50, 896}), 175, 1, 1);
  expect_grid(grid("embedding", {2048, 896}), 7168, 1, 1);
  expect_grid(grid("silu", {243200}), 950, 1, 1);
  expect_grid(grid("matmul", {50, 896, 896}), 56, 4, 1);
  expect_grid(grid("matmul", {1, 896, 151936}), 9496, 1, 1);
  expect_grid(grid("rope", {1, 14, 2, 64, 0, 0}), 2, 1, 1);
  expect_grid(grid("rope", {50, 14, 2, 64, 0, 0}), 88, 1, 1);
  expect_grid(grid("rmsnorm", {2048, 896, 0, 0}), 2048, 1, 1);
  expect_grid(grid("attention", {50, 50, 14, 2, 64, 0}), 50, 14, 1);
  expect_grid(fixed_grid(fixed_kernel("linear", "matmul"), Words{512, 768, 768, 0}), 12, 8, 1);
}

TEST(FixedKernelTable, FoldedGridsHoldEnoughAndHardlyMore) {
  for (const int64_t max_grid : {1000, 65535}) {
    for (const uint32_t n : {1u, 999u, 1000u, 1001u, 65535u, 65536u, 65537u, 131071u, 1000000u}) {
      const Grid grid = fixed_grid(fixed_kernel("softmax"), Words{n, 1}, max_grid);
      EXPECT_LE(grid.x, max_grid);
      EXPECT_LE(grid.y, max_grid);
      EXPECT_GE(grid.x * grid.y * grid.z, n);
      EXPECT_LE(grid.x * grid.y * grid.z, n + n / 100 + 1) << n;
    }
  }
  expect_grid(fixed_grid(fixed_kernel("attention"), Words{65536, 1, 3, 1, 1, 0}), 32768, 3, 2);
}

template <typename F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FixedKernelTable, RefusesWhatAnEntryDoesNotTake) {
  const auto refused = [](std::string_view name, std::string_view entry, const Words& uniform,
                          std::string_view because) {
    const std::string message = refusal([&] { fixed_grid(fixed_kernel(name, entry), uniform); });
    EXPECT_NE(message.find(because), std::string::npos) << message;
  };
  refused("linear", "matmul", {5, 6, 8, 0}, "divisible by 4, got 6");
  refused("linear", "matmul", {5, 8, 6, 0}, "divisible by 4, got 6");
  refused("add", "main_vec4", {7}, "divisible by 4, got 7");
  refused("rope", "main", {1, 1, 1, 7, 0, 0}, "even head_dim, got 7");
  refused("rope", "main_vec4", {1, 1, 1, 1024, 0, 0}, "got 1024");
  refused("attention", "main", {1, 1, 3, 2, 64, 0}, "got 3 and 2");
  refused("attention", "main", {1, 1, 2, 2, 257, 0}, "got 257");
  refused("matmul_int4", "main", {1, 1, 1, 0}, "group_size");
  refused("matmul", "main", {1, 1}, "expected 3 uniform words, got 2");
  refused("nothing", "main", {}, "expected a kernel of the table, got nothing");
  EXPECT_EQ(refusal([] {
              fixed_grid(fixed_kernel("linear", "matmul"), Words{5, 8, 4, 0});
            }),
            "accepted");
}

}  // namespace
}  // namespace tessera::webgpu
