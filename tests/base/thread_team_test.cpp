#include "base/thread_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>
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
        [](void* context, int64_t, Team& member) noexcept {
          auto& taken = static_cast<Work*>(context)->taken;
          for (size_t phase = 0; phase < kPhases; ++phase) {
            for (int64_t c; (c = member.next_chunk(kChunks)) < kChunks;) {
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
      [](void* context, int64_t, Team& member) noexcept {
        auto& [a, b] = *static_cast<Work*>(context);
        for (int phase = 0; phase < 40; ++phase) {
          auto& from = phase % 2 ? b : a;
          auto& to = phase % 2 ? a : b;
          for (int64_t c; (c = member.next_chunk(64)) < 64;) {
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

TEST_P(ThreadTeamTest, OpsFollowOneAnother) {
  // Op i appends i to as many lists as it has chunks: from none to more than there are threads.
  constexpr int64_t kOps = 200, kLists = 23;
  struct Work {
    std::vector<std::vector<int64_t>> lists = std::vector<std::vector<int64_t>>(kLists);
  } work;
  ThreadTeam team(GetParam());
  team.run(
      [](void* context, int64_t i_op, Team& member) noexcept {
        auto& lists = static_cast<Work*>(context)->lists;
        const int64_t n_chunks = i_op % (kLists + 1);
        for (int64_t c; (c = member.next_chunk(n_chunks)) < n_chunks;) {
          lists[static_cast<size_t>(c)].push_back(i_op);
        }
      },
      &work, kOps);
  for (int64_t c = 0; c < kLists; ++c) {
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < kOps; ++i) {
      if (c < i % (kLists + 1)) expected.push_back(i);
    }
    EXPECT_EQ(work.lists[static_cast<size_t>(c)], expected);
  }
}

TEST_P(ThreadTeamTest, AChunkSeesWhatAllChunksBeforeTheBarrierWrote) {
  struct Work {
    std::array<int64_t, 64> a = {};
    std::atomic<int> n_wrong{0};
  } work;
  ThreadTeam team(GetParam());
  team.run(
      [](void* context, int64_t i_op, Team& member) noexcept {
        auto& [a, n_wrong] = *static_cast<Work*>(context);
        const auto n = static_cast<int64_t>(a.size());
        for (int64_t c; (c = member.next_chunk(n)) < n;) a[static_cast<size_t>(c)] += 1;
        member.barrier();
        for (int64_t c; (c = member.next_chunk(n)) < n;) {
          for (const int64_t value : a) n_wrong += value != i_op + 1;
        }
      },
      &work, 50);
  EXPECT_EQ(work.n_wrong, 0);
}

// Delays are put where they decide: threads wait for one another until the case in question has
// come about, however the system schedules them.

TEST(ThreadTeam, AThreadThatIsLateForItsNextChunkHoldsUpNobody) {
  // Both threads take a chunk of op 0. Then the worker, out of the kernel's chunks, stands still
  // until the whole run is over.
  struct Work {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> n_in_op_0{0}, n_done{0};
    std::atomic<int> n_runs_over{0};
    std::atomic<bool> worker_stands{false};
  } work;
  ThreadTeam team(2);
  for (int run = 0; run < 3; ++run) {
    work.n_in_op_0 = work.n_done = 0;
    work.worker_stands = false;
    team.run(
        [](void* context, int64_t i_op, Team& member) noexcept {
          Work& my = *static_cast<Work*>(context);
          const bool is_caller = std::this_thread::get_id() == my.caller;
          for (int64_t c; (c = member.next_chunk(2)) < 2;) {
            if (i_op == 0) {
              ++my.n_in_op_0;
              while (my.n_in_op_0 < 2) std::this_thread::yield();
              // The caller is last, so that it goes on.
              while (is_caller && !my.worker_stands) std::this_thread::yield();
            }
            ++my.n_done;
          }
          if (i_op > 0 || is_caller) return;
          const int n_runs_over = my.n_runs_over;
          my.worker_stands = true;
          while (my.n_runs_over == n_runs_over) std::this_thread::yield();
        },
        &work, 10);
    EXPECT_EQ(work.n_done, 20);
    ++work.n_runs_over;
  }
}

TEST(ThreadTeam, AnOpWaitsForAThreadThatIsLateInAChunk) {
  // The worker holds chunk 0 or 1 of op 0 until the caller has found nothing left to take.
  struct Work {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> n_in_op_0{0};
    std::atomic<bool> caller_is_out{false}, worker_is_done{false}, too_early{false};
  } work;
  ThreadTeam team(2);
  team.run(
      [](void* context, int64_t i_op, Team& member) noexcept {
        Work& my = *static_cast<Work*>(context);
        const bool is_caller = std::this_thread::get_id() == my.caller;
        for (int64_t c; (c = member.next_chunk(2)) < 2;) {
          if (i_op == 1 && !my.worker_is_done) my.too_early = true;
          if (i_op == 1) continue;
          ++my.n_in_op_0;
          while (my.n_in_op_0 < 2) std::this_thread::yield();
          if (is_caller) continue;
          while (!my.caller_is_out) std::this_thread::yield();
          my.worker_is_done = true;
        }
        if (is_caller && i_op == 0) my.caller_is_out = true;
      },
      &work, 2);
  EXPECT_TRUE(work.worker_is_done);
  EXPECT_FALSE(work.too_early);
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
