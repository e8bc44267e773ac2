#include "base/team.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/thread_team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera {
namespace {

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// About 50 us on current x86 parts (a pause is 40 to 140 cycles): longer than the gap between two
/// ops of a decode step, shorter than anything a user would call idle.
constexpr int kSpins = 1500;

}  // namespace

// A step is a sequence of phases: an op, or a part of one between barriers. In each phase one
// thread, the leader, knows that everything before is done and nobody else works: the caller at
// first, later whoever completes the last chunk of a phase. The leader enters the kernel, takes
// chunk 0 and opens the phase for the others if there is more than one chunk. The others enter a
// kernel only with a chunk in hand, so neither the kernel nor the step can end under them; between
// chunks they touch nothing that belongs to the step. A thread that the system does not run, or
// that was never woken, is thus not waited for unless it holds a chunk.
struct Team::Shared {
  // The phase that is open: its number in the upper half (so that a slow thread cannot mistake a
  // later phase for the one it looked at), chunks that nobody has taken in the lower.
  alignas(64) std::atomic<uint64_t> open{0};
  // Chunks not done of that phase; the thread that brings it to 0 leads.
  alignas(64) std::atomic<uint32_t> n_undone{0};
  // Changes when there may be something to do: what waiting threads watch.
  alignas(64) std::atomic<uint32_t> signal{0};
  std::atomic<int> n_awake{0};
  std::atomic<bool> running{false}, stopping{false};
  int max_awake = 1;

  // Written by the leader before it opens a phase, read by holders of its chunks.
  int64_t i_op = 0;
  uint32_t i_phase = 0;
  // Of the run, written before its first phase.
  ThreadTeam::Job job = nullptr;
  void* context = nullptr;
  int64_t n_ops = 0;

  void open_phase(uint32_t n_chunks) noexcept {
    const uint64_t number = (open.load(std::memory_order_relaxed) >> 32) + 1;
    n_undone.store(n_chunks, std::memory_order_relaxed);
    open.store(number << 32 | (n_chunks - 1), std::memory_order_release);
    signal.fetch_add(1);
    const int wanted = static_cast<int>(std::min<uint32_t>(n_chunks, 1024));
    for (int i = n_awake.load(std::memory_order_relaxed); i < std::min(wanted, max_awake); ++i) {
      signal.notify_one();
    }
  }

  /// Returns when the signal is no longer `old`: spins, then sleeps.
  void wait_for_signal(uint32_t old) noexcept {
    for (int i = 0; i < kSpins; ++i) {
      if (signal.load(std::memory_order_acquire) != old) return;
      relax();
    }
    n_awake.fetch_sub(1);
    signal.wait(old, std::memory_order_acquire);
    n_awake.fetch_add(1);
  }
};

enum class Team::State : uint8_t {
  kLeads,     // all before is done; the phase is not open
  kAlone,     // runs the phase without opening it
  kShares,    // holds a chunk of the open phase
  kEntering,  // took a chunk of the open phase from outside and is on its way there
  kComplete,  // did the last chunk of the phase, everything is done
  kLeft,      // has no chunk: passes through the rest of the kernel
};

/// A chunk of the open phase: how many were left before, this one included; 0 if none was.
uint32_t Team::take() noexcept {
  uint64_t open = shared_->open.load(std::memory_order_relaxed);
  while ((open & UINT32_MAX) > 0) {
    if (shared_->open.compare_exchange_weak(open, open - 1, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      return static_cast<uint32_t>(open);
    }
  }
  return 0;
}

int64_t Team::next_chunk(int64_t n_chunks) noexcept {
  switch (state_) {
    case State::kLeads:
      if (n_chunks <= 0) break;
      if (n_chunks == 1 || size_ == 1) {
        state_ = State::kAlone;
        next_ = 1;
        return 0;
      }
      TESSERA_DCHECK(n_chunks <= UINT32_MAX);
      shared_->i_op = i_op_;
      shared_->i_phase = i_phase_;
      shared_->open_phase(static_cast<uint32_t>(n_chunks));
      state_ = State::kShares;
      n_held_ = 1;
      return 0;
    case State::kAlone:
      if (next_ < n_chunks) return next_++;
      state_ = State::kComplete;
      break;
    case State::kEntering:
      if (i_phase_ != entered_phase_) break;
      state_ = State::kShares;
      return n_chunks - next_;
    case State::kShares:
      if (const uint32_t n_left = take()) {
        ++n_held_;
        return n_chunks - n_left;
      }
      // Releases what this thread wrote, acquires what the others did.
      state_ = shared_->n_undone.fetch_sub(n_held_, std::memory_order_acq_rel) == n_held_
                   ? State::kComplete
                   : State::kLeft;
      break;
    case State::kComplete:
    case State::kLeft:
      break;
  }
  return std::max<int64_t>(n_chunks, 0);
}

void Team::barrier() noexcept {
  TESSERA_DCHECK(state_ != State::kAlone && state_ != State::kShares);
  ++i_phase_;
  if (state_ == State::kComplete) state_ = State::kLeads;
}

/// Takes a chunk if there is one; the thread has then to run the op i_op_.
bool Team::try_enter() noexcept {
  const uint32_t n_left = take();
  if (n_left == 0) return false;
  state_ = State::kEntering;
  i_op_ = shared_->i_op;
  i_phase_ = 0;
  entered_phase_ = shared_->i_phase;
  next_ = n_left;
  n_held_ = 1;
  return true;
}

void Team::begin_op(int64_t i_op) noexcept {
  state_ = State::kLeads;
  i_op_ = i_op;
  i_phase_ = 0;
}

/// After a kernel: whether all its chunks are done and this thread is the one to go on.
bool Team::leads() const noexcept {
  TESSERA_DCHECK(state_ != State::kAlone && state_ != State::kShares);
  return state_ == State::kLeads || state_ == State::kComplete;
}

struct ThreadTeam::Impl {
  Team::Shared shared;
  std::vector<std::thread> workers;
  int size = 1;

  /// Runs ops from the one that `team` has entered or leads. True at the end of the run, false
  /// when another thread is the one to go on.
  bool run_ops(Team& team) noexcept {
    for (;;) {
      shared.job(shared.context, team.i_op_, team);
      if (!team.leads()) return false;
      if (team.i_op_ + 1 == shared.n_ops) break;
      team.begin_op(team.i_op_ + 1);
    }
    shared.running.store(false, std::memory_order_release);
    return true;
  }

  void work() noexcept {
    Team team(&shared, size);
    for (;;) {
      const uint32_t signal = shared.signal.load(std::memory_order_acquire);
      if (shared.stopping.load(std::memory_order_acquire)) return;
      if (!team.try_enter()) {
        shared.wait_for_signal(signal);
      } else if (run_ops(team)) {
        announce();
      }
    }
  }

  /// Wakes everybody.
  void announce() noexcept {
    shared.signal.fetch_add(1);
    shared.signal.notify_all();
  }
};

ThreadTeam::ThreadTeam(int n_threads) : impl_(std::make_unique<Impl>()) {
  if (n_threads < 1 || n_threads > 1024) {
    fail(ErrorKind::kInvalidArgument, "threads", "expected 1 to 1024, got {}", n_threads);
  }
  impl_->size = n_threads;
  impl_->shared.n_awake = n_threads;
  impl_->shared.max_awake = std::min(n_threads, available_cpus());
  for (int i = 1; i < n_threads; ++i) impl_->workers.emplace_back([this] { impl_->work(); });
}

ThreadTeam::~ThreadTeam() {
  impl_->shared.stopping.store(true, std::memory_order_release);
  impl_->announce();
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadTeam::size() const {
  return impl_->size;
}

void ThreadTeam::run(Job job, void* context, int64_t n_ops) {
  if (n_ops == 0) return;
  Team::Shared& shared = impl_->shared;
  shared.job = job;
  shared.context = context;
  shared.n_ops = n_ops;
  shared.running.store(true, std::memory_order_relaxed);
  Team team(&shared, impl_->size);
  team.begin_op(0);
  impl_->run_ops(team);
  for (;;) {
    const uint32_t signal = shared.signal.load(std::memory_order_acquire);
    if (!shared.running.load(std::memory_order_acquire)) return;
    if (team.try_enter()) {
      impl_->run_ops(team);
    } else {
      shared.wait_for_signal(signal);
    }
  }
}

namespace {

/// The CPU quota of the cgroup in whole CPUs, rounded up; INT_MAX without one.
int cgroup_cpus() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && quota != "max") {
    return std::max(
        1, static_cast<int>(ceil_div<int64_t>(std::stoll(quota), static_cast<int64_t>(period))));
  }
  int64_t quota_us = -1, period_us = 0;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota_us && v1_period >> period_us && quota_us > 0 && period_us > 0) {
    return std::max(1, static_cast<int>(ceil_div(quota_us, period_us)));
  }
  return 1 << 20;
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int allowed = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) allowed = CPU_COUNT(&set);
  return std::max(1, std::min(allowed, cgroup_cpus()));
}

}  // namespace tessera
