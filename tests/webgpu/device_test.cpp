#include <numeric>

#include "support.hpp"

namespace tessera::webgpu {
namespace {

std::vector<std::byte> pattern(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(WebGpuDevice, ListsAdaptersWithTheirLimits) {
  TESSERA_NEEDS_ADAPTER();
  for (const Adapter& adapter : adapters()) {
    EXPECT_FALSE(adapter.name.empty());
    // What the standard promises of every implementation.
    EXPECT_GE(adapter.capabilities.max_binding_bytes, int64_t{128} << 20);
    EXPECT_GE(adapter.capabilities.max_workgroup_bytes, 16 << 10);
    EXPECT_GE(adapter.capabilities.max_workgroup_threads, 256);
    EXPECT_GE(adapter.capabilities.max_storage_buffers, 8);
    EXPECT_GE(adapter.capabilities.max_grid, 65535);
  }
}

TEST(WebGpuDevice, FullLimitsAreTheAdapters) {
  TESSERA_NEEDS_ADAPTER();
  const GpuDevice device(0, {});
  const Capabilities& adapter = adapters()[0].capabilities;
  EXPECT_EQ(device.capabilities().max_binding_bytes, adapter.max_binding_bytes);
  EXPECT_EQ(device.capabilities().max_workgroup_bytes, adapter.max_workgroup_bytes);
  EXPECT_EQ(device.capabilities().f16, adapter.f16);
  EXPECT_EQ(device.capabilities().subgroups, adapter.subgroups);
  EXPECT_EQ(device.caps().kind, "webgpu");
}

TEST(WebGpuDevice, DefaultLimitsAreTheStandards) {
  TESSERA_NEEDS_ADAPTER();
  const GpuDevice device(0, {.default_limits = true});
  const Capabilities& capabilities = device.capabilities();
  EXPECT_EQ(capabilities.max_binding_bytes, int64_t{128} << 20);
  EXPECT_EQ(capabilities.max_buffer_bytes, int64_t{256} << 20);
  EXPECT_EQ(capabilities.max_workgroup_bytes, 16 << 10);
  EXPECT_EQ(capabilities.max_workgroup_threads, 256);
  EXPECT_EQ(capabilities.max_storage_buffers, 8);
  EXPECT_EQ(capabilities.max_grid, 65535);
  EXPECT_FALSE(capabilities.f16);
  EXPECT_FALSE(capabilities.subgroups);
  EXPECT_FALSE(capabilities.large_bindings());
}

TEST(WebGpuDevice, RefusesAnAdapterThatIsNotThere) {
  TESSERA_NEEDS_ADAPTER();
  EXPECT_THROW(GpuDevice(1000, {}), Error);
}

TEST(WebGpuDevice, BytesComeBackAsWritten) {
  TESSERA_NEEDS_ADAPTER();
  GpuDevice device(0, {});
  for (const size_t n : {1u, 2u, 3u, 4u, 5u, 63u, 4096u, 4099u}) {
    const auto buffer = device.allocate(static_cast<int64_t>(n));
    EXPECT_EQ(buffer->size_bytes(), static_cast<int64_t>(n));
    EXPECT_EQ(buffer->host_address(), nullptr);
    const std::vector<std::byte> bytes = pattern(n);
    device.write(*buffer, 0, bytes);
    std::vector<std::byte> back(n);
    device.read(*buffer, 0, back);
    EXPECT_EQ(back, bytes) << n;
  }
}

TEST(WebGpuDevice, RaggedRangesLeaveTheirNeighboursAlone) {
  TESSERA_NEEDS_ADAPTER();
  GpuDevice device(0, {});
  constexpr size_t kBytes = 41;
  const auto buffer = device.allocate(kBytes);
  std::vector<std::byte> expected = pattern(kBytes);
  device.write(*buffer, 0, expected);
  for (size_t begin = 0; begin < kBytes; ++begin) {
    for (const size_t n : {size_t{1}, size_t{2}, size_t{5}, kBytes - begin}) {
      if (begin + n > kBytes) continue;
      const std::vector<std::byte> bytes(n, static_cast<std::byte>(begin * 3 + n));
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin));
      device.write(*buffer, static_cast<int64_t>(begin), bytes);
      std::vector<std::byte> part(n);
      device.read(*buffer, static_cast<int64_t>(begin), part);
      EXPECT_EQ(part, bytes);
    }
  }
  std::vector<std::byte> all(kBytes);
  device.read(*buffer, 0, all);
  EXPECT_EQ(all, expected);
}

TEST(WebGpuDevice, MoreThanOneStagingPiece) {
  TESSERA_NEEDS_ADAPTER();
  GpuDevice device(0, {});
  constexpr size_t kBytes = (size_t{33} << 20) + 5;
  const auto buffer = device.allocate(kBytes);
  const std::vector<std::byte> bytes = pattern(kBytes);
  device.write(*buffer, 0, bytes);
  std::vector<std::byte> back(kBytes);
  device.read(*buffer, 0, back);
  EXPECT_TRUE(back == bytes);
}

TEST(WebGpuDevice, TooLargeABufferIsAnError) {
  TESSERA_NEEDS_ADAPTER();
  GpuDevice device(0, {.default_limits = true});
  try {
    device.allocate(int64_t{1} << 40);
    FAIL() << "a buffer of 1 TiB was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("1099511627776"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("268435456"), std::string::npos) << error.what();
  }
  // The device is as good as before.
  const auto buffer = device.allocate(16);
  const std::vector<std::byte> bytes = pattern(16);
  device.write(*buffer, 0, bytes);
  std::vector<std::byte> back(16);
  device.read(*buffer, 0, back);
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace tessera::webgpu
