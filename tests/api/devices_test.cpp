#include "api/devices.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

TEST(Devices, ListsTheCpuWithItsTiersBestFirst) {
  const std::vector<DeviceInfo> infos = devices();
  ASSERT_FALSE(infos.empty());
  EXPECT_EQ(infos[0].spec, "cpu");
  EXPECT_FALSE(infos[0].name.empty());
  EXPECT_GT(infos[0].memory_bytes, 0);
  ASSERT_FALSE(infos[0].features.empty());
  EXPECT_EQ(infos[0].features.back(), "portable");
  for (const DeviceInfo& info : infos) EXPECT_NE(info.spec, "mock");
}

TEST(Devices, UnknownOnesAreNamedInTheError) {
  try {
    Model::load("/nowhere.gguf", {.device = "quantum:3"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("quantum"), std::string::npos) << error.what();
  }
}

TEST(Version, HasThreeNumbers) {
  EXPECT_EQ(std::count(version().begin(), version().end(), '.'), 2) << version();
}

}  // namespace
}  // namespace tessera
