// Decoding must not touch the heap: operator new is replaced by one that counts.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/tiny_engine.hpp"

namespace {
std::atomic<int64_t> n_allocations{0};
}

// Inlined into one another they look mismatched to GCC, which knows only the standard ones.
[[gnu::noinline]] void* operator new(size_t size) {
  ++n_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace tessera {
namespace {

TEST(Allocation, DecodingDoesNotTouchTheHeap) {
  TinyEngine engine;
  Sequence sequence(*engine);
  StepResult step;
  uint32_t token = 7;
  const StepRequest request = {&sequence, {&token, 1}, LogitRows::kLast};
  // Records the step and sizes its result; steps and their callers exchange two of them.
  for (int i = 0; i < 2; ++i) engine->step({&request, 1}, true, step);
  const int64_t before = n_allocations;
  for (int i = 0; i < 100; ++i) {  // across three page boundaries
    engine->step({&request, 1}, true, step);
    token = step.greedy_ids[0];
  }
  EXPECT_EQ(n_allocations - before, 0);
  EXPECT_EQ(sequence.length(), 102);
}

}  // namespace
}  // namespace tessera
