#include "base/team.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

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
/// With more threads than CPUs the one waited for may not be running: give way at once.
constexpr int kSpinsOversubscribed = 20;

/// Returns when `value` is no longer `old`: spins, then sleeps.
void wait_while_equal(const std::atomic<uint32_t>& value, uint32_t old, int spins) noexcept {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct Team::Shared {
  // Each counter has a cache line of its own: the waiters spin on `phase` while others still take
  // chunks and arrive.
  alignas(64) std::atomic<int64_t> next_chunk{0};
  alignas(64) std::atomic<int> n_arrived{0};
  alignas(64) std::atomic<uint32_t> phase{0};
  int spins = kSpins;
};

int64_t Team::next_chunk() noexcept {
  return shared_->next_chunk.fetch_add(1, std::memory_order_relaxed);
}

void Team::barrier() noexcept {
  const uint32_t phase = shared_->phase.load(std::memory_order_relaxed);
  if (shared_->n_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) {
    wait_while_equal(shared_->phase, phase, shared_->spins);
    return;
  }
  shared_->n_arrived.store(0, std::memory_order_relaxed);
  shared_->next_chunk.store(0, std::memory_order_relaxed);
  shared_->phase.store(phase + 1, std::memory_order_release);
  if (size_ > 1) shared_->phase.notify_all();
}

struct ThreadTeam::Impl {
  Team::Shared shared;
  std::vector<std::thread> workers;
  alignas(64) std::atomic<uint32_t> generation{0};
  Job job = nullptr;
  void* context = nullptr;
  bool stopping = false;
  int size = 1;

  void work(int index) noexcept {
    Team team(&shared, index, size);
    for (uint32_t seen = 0;; ++seen) {
      wait_while_equal(generation, seen, shared.spins);
      if (stopping) return;
      job(context, team);
      team.barrier();
    }
  }

  void announce() noexcept {
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }
};

ThreadTeam::ThreadTeam(int n_threads) : impl_(std::make_unique<Impl>()) {
  if (n_threads < 1 || n_threads > 1024) {
    fail(ErrorKind::kInvalidArgument, "threads", "expected 1 to 1024, got {}", n_threads);
  }
  impl_->size = n_threads;
  if (n_threads > available_cpus()) impl_->shared.spins = kSpinsOversubscribed;
  for (int i = 1; i < n_threads; ++i) impl_->workers.emplace_back([this, i] { impl_->work(i); });
}

ThreadTeam::~ThreadTeam() {
  impl_->stopping = true;
  impl_->announce();
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadTeam::size() const {
  return impl_->size;
}

void ThreadTeam::run(Job job, void* context) {
  impl_->job = job;
  impl_->context = context;
  if (impl_->size > 1) impl_->announce();
  Team team(&impl_->shared, 0, impl_->size);
  job(context, team);
  team.barrier();
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
