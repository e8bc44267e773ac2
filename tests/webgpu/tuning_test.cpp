// The table of configurations that ships.

#include "webgpu/tuning.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "ops/matmul/matmul_tile_webgpu.hpp"

namespace tessera::webgpu {
namespace {

TEST(Tuning, AdaptersAreInTheFamilyOfTheirNameElseInTheDefault) {
  EXPECT_EQ(tuning_for("NVIDIA H200").name, "nvidia");
  EXPECT_EQ(tuning_for("llvmpipe (LLVM 15.0.6, 256 bits)").name, "llvmpipe");
  EXPECT_EQ(tuning_for("A card of tomorrow").name, "default");
  EXPECT_EQ(tunings().back().name, "default");
}

TEST(Tuning, EveryFamilyHasEveryKernelOfTheDefault) {
  for (const Tuning& tuning : tunings()) {
    for (const KernelConfig& config : tunings().back().configs) {
      EXPECT_FALSE(tuning.of(config.kernel).empty()) << tuning.name << " " << config.kernel;
    }
  }
}

TEST(Tuning, SingleTuningsHoldEveryConfigurationThatShips) {
  for (const Tuning& tuning : tunings()) {
    for (const KernelConfig& config : tuning.configs) {
      EXPECT_TRUE(std::any_of(single_tunings().begin(), single_tunings().end(),
                              [&](const Tuning& single) {
                                return std::find(single.configs.begin(), single.configs.end(),
                                                 config) != single.configs.end();
                              }))
          << config.to_string();
    }
  }
}

TEST(Tuning, AConfigurationWithoutANumberSaysWhich) {
  const KernelConfig config = {"some.kernel", {{"rows", 4}}};
  EXPECT_EQ(config["rows"], 4);
  try {
    static_cast<void>(config["columns"]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "some.kernel: the configuration {rows 4} has no 'columns'");
  }
}

/// What every implementation has.
Capabilities core() {
  Capabilities capabilities;
  capabilities.max_binding_bytes = int64_t{128} << 20;
  capabilities.max_workgroup_bytes = 16384;
  capabilities.max_workgroup_threads = 256;
  return capabilities;
}

TEST(Tuning, TilesDivideEvenlyAndSomeRunOnEveryDevice) {
  for (const KernelConfig& config : candidates(kMatmulTile)) EXPECT_NO_THROW(TileConfig{config});
  for (const Tuning& tuning : tunings()) {
    for (const KernelConfig& config : tuning.of(kMatmulTile)) EXPECT_NO_THROW(TileConfig{config});
    Capabilities capabilities = core();
    capabilities.tuning = &tuning;
    EXPECT_FALSE(tile_configs(capabilities).empty()) << tuning.name;
    for (const TileConfig& config : tile_configs(capabilities)) {
      EXPECT_LE(config.workgroup_bytes(), capabilities.max_workgroup_bytes);
    }
  }
  EXPECT_THROW(TileConfig(KernelConfig{std::string(kMatmulTile), {{"tile_rows", 33}}}), Error);
}

TEST(Tuning, TilesTooLargeForADeviceAreLeftOut) {
  Capabilities capabilities = core();
  KernelConfig large = candidates(kMatmulTile).front();
  large.numbers["step"] = 64;  // 64 KiB
  const Tuning tuning = {.name = "large", .names_match = {}, .configs = {large}};
  capabilities.tuning = &tuning;
  const std::vector<TileConfig> configs = tile_configs(capabilities);
  ASSERT_FALSE(configs.empty());  // the default's
  EXPECT_LE(configs[0].workgroup_bytes(), capabilities.max_workgroup_bytes);
}

// Scratch memory is planned for the most rows and must do for fewer.
TEST(Tuning, SplitsOfFewerRowsFitTheScratchOfMore) {
  Capabilities capabilities = core();
  for (const Tuning& tuning : tunings()) {
    capabilities.tuning = &tuning;
    for (const int64_t columns : {64, 576, 768, 3072}) {
      for (const int64_t depth : {64, 576, 3072}) {
        const auto product = [&](int64_t rows) {
          return TileProduct{.y = Tensor::dense(DType::kF32, {rows, columns}),
                             .x = Tensor::dense(DType::kF32, {rows, depth}),
                             .w = Tensor::dense(DType::kF32, {columns, depth})};
        };
        const int64_t planned = split_scratch_bytes(product(512), capabilities);
        for (const int64_t rows : {2, 9, 64, 100, 512}) {
          EXPECT_EQ(split_scratch_bytes(product(rows), capabilities), planned);
          if (planned == 0) continue;
          for (const TileConfig& config : tile_configs(capabilities)) {
            const int64_t splits = config.n_splits(config.n_tiles(rows, columns), depth);
            if (splits > 1) {
              EXPECT_LE(4 * splits * rows * columns, planned);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::webgpu
