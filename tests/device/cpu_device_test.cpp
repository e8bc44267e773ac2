#include "cpu/device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/error.hpp"
#include "cpu/queue.hpp"

namespace tessera::cpu {
namespace {

struct AddOneArgs {
  float* x;
  int64_t n;
};

void add_one(const AddOneArgs& args, Team& team) noexcept {
  for (int64_t i; (i = team.next_chunk(args.n)) < args.n;) args.x[i] += 1;
}

class CpuDeviceTest : public testing::TestWithParam<CpuDevice::Memory> {
 protected:
  CpuDevice device_{{.n_threads = 2, .isa = {}}, GetParam()};
  KernelTable table_;
  Arena arena_{device_};
};

TEST_P(CpuDeviceTest, ARecordedStepRunsOnlyWhenSubmittedAndCanBeReplayed) {
  const std::unique_ptr<Buffer> buffer = device_.allocate(4 * 100);
  const Tensor x = Tensor::dense(DType::kF32, {100}, buffer.get());
  const std::array<float, 100> zeros = {};
  write_tensor(x, std::as_bytes(std::span(zeros)));
  const std::unique_ptr<Queue> queue = device_.make_queue(table_, arena_);
  queue->begin();
  for (int i = 0; i < 3; ++i) {
    cpu_queue(*queue).record<AddOneArgs>("add_one", add_one, {host_data<float>(x), 100});
  }
  const std::unique_ptr<Step> step = queue->end();
  const auto first_and_last = [&] {
    const std::vector<std::byte> bytes = read_tensor(x);
    std::array<float, 100> values;
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return std::vector{values[0], values[99]};
  };
  EXPECT_EQ(first_and_last(), (std::vector{0.0f, 0.0f}));
  queue->submit(*step);
  queue->wait().value();
  EXPECT_EQ(first_and_last(), (std::vector{3.0f, 3.0f}));
  queue->submit(*step);
  queue->wait().value();
  EXPECT_EQ(first_and_last(), (std::vector{6.0f, 6.0f}));
}

TEST_P(CpuDeviceTest, TooMuchMemoryIsAnError) {
  try {
    device_.allocate(int64_t{1} << 62);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
}

INSTANTIATE_TEST_SUITE_P(Memories, CpuDeviceTest,
                         testing::Values(CpuDevice::Memory::kShared, CpuDevice::Memory::kProtected),
                         [](const auto& instance) {
                           return instance.param == CpuDevice::Memory::kShared ? "cpu" : "mock";
                         });

TEST(CpuDevice, UsesAlignedHostMemoryInPlace) {
  CpuDevice device({.n_threads = 1, .isa = {}}, CpuDevice::Memory::kShared);
  alignas(16) const std::array<std::byte, 64> bytes = {};
  const std::unique_ptr<Buffer> whole = device.wrap_host(bytes);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->host_address(), bytes.data());
  EXPECT_EQ(device.wrap_host(std::span(bytes).subspan(1)), nullptr);
}

TEST(MockDeviceDeathTest, MemoryCannotBeTouchedOutsideOfAStep) {
  CpuDevice device({.n_threads = 1, .isa = {}}, CpuDevice::Memory::kProtected);
  const std::unique_ptr<Buffer> buffer = device.allocate(64);
  EXPECT_EQ(device.wrap_host(std::span<const std::byte>()), nullptr);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(buffer->host_address()) = 1, "");
}

TEST(Isa, TiersAreNestedAndNamed) {
  const std::vector<Tier> tiers = available_tiers();
  ASSERT_FALSE(tiers.empty());
  EXPECT_EQ(tiers.back(), Tier::kPortable);
  EXPECT_EQ(available_tiers("portable"), std::vector<Tier>{Tier::kPortable});
  EXPECT_THROW(available_tiers("sse9"), Error);
}

}  // namespace
}  // namespace tessera::cpu
