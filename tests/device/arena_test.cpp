#include "device/arena.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cpu/device.hpp"

namespace tessera {
namespace {

/// A step that holds up to three slots at once; returns the buffers in the order they were taken.
std::vector<Buffer*> step(Arena& arena, int64_t n) {
  std::vector<Buffer*> taken;
  const Slot x(arena, DType::kF32, {n, 8});
  taken.push_back(x.tensor().buffer);
  for (int layer = 0; layer < 2; ++layer) {
    const Slot wide(arena, DType::kF32, {n, 64});
    taken.push_back(wide.tensor().buffer);
    const Slot narrow(arena, DType::kF32, {n, 2});
    taken.push_back(narrow.tensor().buffer);
  }
  return taken;
}

TEST(Arena, SlotsAreFixedByTheOrderAndSizedByTheLargestStep) {
  cpu::CpuDevice device({.n_threads = 1, .isa = {}}, cpu::CpuDevice::Memory::kShared);
  Arena arena(device);
  step(arena, 1);
  step(arena, 16);
  EXPECT_EQ(arena.size_bytes(), 16 * (8 + 64 + 2) * 4);
  arena.allocate();
  const std::vector<Buffer*> first = step(arena, 16), second = step(arena, 3);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[1], first[3]);  // the second layer reuses the first one's slots
  EXPECT_NE(first[0], first[1]);  // what lives together lies apart
  EXPECT_NE(first[1], first[2]);
}

TEST(Arena, RefusesWhatWasNotPlanned) {
  cpu::CpuDevice device({.n_threads = 1, .isa = {}}, cpu::CpuDevice::Memory::kShared);
  Arena arena(device);
  step(arena, 4);
  arena.allocate();
  EXPECT_THROW(step(arena, 5), Error);
  const Slot a(arena, DType::kF32, {1}), b(arena, DType::kF32, {1}), c(arena, DType::kF32, {1});
  EXPECT_THROW(Slot(arena, DType::kF32, {1}), Error);
}

}  // namespace
}  // namespace tessera
