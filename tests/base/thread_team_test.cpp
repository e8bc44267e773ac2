#include "base/thread_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "base/error.hpp"

namespace tessera {
namespace {

class ThreadTeamTest : public testing::TestWithParam<int> {};

TEST_P(ThreadTeamTest, EveryChunkIsTakenOnceInEveryPhase) {
  constexpr int kChunks = 37, kPhases = 50;
  struct Work {
    std::vector<int> taken = std::vector<int>(kChunks * kPhases);
  } work;
  ThreadTeam team(GetParam());
  for (int run = 0; run < 20; ++run) {
    team.run(
        [](void* context, Team& member) noexcept {
          auto& taken = static_cast<Work*>(context)->taken;
          for (size_t phase = 0; phase < kPhases; ++phase) {
            for (int64_t c; (c = member.next_chunk()) < kChunks;) {
              taken[phase * kChunks + static_cast<size_t>(c)] += 1;
            }
            member.barrier();
          }
        },
        &work);
  }
  EXPECT_TRUE(std::all_of(work.taken.begin(), work.taken.end(), [](int n) { return n == 20; }));
}

TEST_P(ThreadTeamTest, WhatWasWrittenBeforeABarrierIsSeenBehindIt) {
  struct Work {
    std::vector<int64_t> a = std::vector<int64_t>(64), b = std::vector<int64_t>(64);
  } work;
  std::iota(work.a.begin(), work.a.end(), 0);
  ThreadTeam team(GetParam());
  // Each phase makes b[i] = a[i] + a[i + 1 mod 64] from what other members may have written.
  team.run(
      [](void* context, Team& member) noexcept {
        auto& [a, b] = *static_cast<Work*>(context);
        for (int phase = 0; phase < 40; ++phase) {
          auto& from = phase % 2 ? b : a;
          auto& to = phase % 2 ? a : b;
          for (int64_t c; (c = member.next_chunk()) < 64;) {
            const auto i = static_cast<size_t>(c);
            to[i] = (from[i] + from[(i + 1) % 64]) % 1000003;
          }
          member.barrier();
        }
      },
      &work);
  std::vector<int64_t> expected(64), next(64);
  std::iota(expected.begin(), expected.end(), 0);
  for (int phase = 0; phase < 40; ++phase) {
    for (size_t i = 0; i < 64; ++i) next[i] = (expected[i] + expected[(i + 1) % 64]) % 1000003;
    expected = next;
  }
  EXPECT_EQ(work.a, expected);
}

TEST_P(ThreadTeamTest, MembersAreNumberedAndTheCallerIsFirst) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(GetParam()));
  ThreadTeam team(GetParam());
  team.run(
      [](void* context, Team& member) noexcept {
        auto& numbers = *static_cast<std::vector<std::atomic<int>>*>(context);
        numbers[static_cast<size_t>(member.index())] += member.size();
      },
      &seen);
  for (const auto& count : seen) EXPECT_EQ(count, GetParam());
}

// 16 threads on two CPUs: more members than can run at once must neither hang nor go wrong.
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamTest, testing::Values(1, 2, 3, 16));

TEST(ThreadTeam, RefusesSizesWithoutMeaning) {
  EXPECT_THROW(ThreadTeam(0), Error);
  EXPECT_THROW(ThreadTeam(1025), Error);
  EXPECT_GE(available_cpus(), 1);
}

}  // namespace
}  // namespace tessera
