#include "bench/probes.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "bench/probe_kernels.hpp"
#include "cpu/isa.hpp"

namespace tessera::bench {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLargePage = int64_t{2} << 20;
constexpr int64_t kMaxWorkingSet = int64_t{512} << 20;
constexpr int64_t kSampleBytes = int64_t{16} << 20;  // of a thread: about a millisecond
constexpr int64_t kSampleNs = 1'000'000;

const ProbeKernels& kernels_of(cpu::Tier tier) {
#if defined(__x86_64__)
  constexpr std::array<const ProbeKernels*, cpu::kNumTiers> kAll = {
      &portable::kProbeKernels, &avx2::kProbeKernels, &avx512::kProbeKernels,
      &avx512vnni::kProbeKernels};
  return *kAll[static_cast<size_t>(tier)];
#else
  static_cast<void>(tier);
  return portable::kProbeKernels;
#endif
}

}  // namespace

/// As large as the largest working set so far; in large pages where the system has them, since the
/// ceiling is what the machine can do.
struct Probes::Memory {
  int64_t size_bytes = 0;
  std::unique_ptr<unsigned char, decltype(&std::free)> data = {nullptr, std::free};

  const unsigned char* reserve(int64_t bytes) {
    if (bytes > size_bytes) {
      const auto size = static_cast<size_t>(round_up(bytes, kLargePage));
      data.reset(static_cast<unsigned char*>(std::aligned_alloc(kLargePage, size)));
      if (!data) throw std::bad_alloc();
      size_bytes = bytes;
      madvise(data.get(), size, MADV_HUGEPAGE);
      std::memset(data.get(), 1, static_cast<size_t>(bytes));  // else all pages are one zero page
    }
    return data.get();
  }
};

Probes::Probes(int n_threads, std::string_view isa)
    : isa_(cpu::name(cpu::available_tiers(isa).front())),
      kernels_(&kernels_of(*cpu::tier_from_name(isa_))),
      team_(n_threads > 0 ? n_threads : available_cpus()),
      memory_(std::make_unique<Memory>()) {}

Probes::~Probes() = default;

double Probes::time_read(int64_t thread_bytes, int n_streams) {
  struct Job {
    const ProbeKernels* kernels;
    const unsigned char* data;
    int64_t thread_bytes, n_passes;
    int n_streams;
  };
  Job job = {kernels_, memory_->reserve(thread_bytes * team_.size()), thread_bytes,
             std::max<int64_t>(1, kSampleBytes / thread_bytes), n_streams};
  const int64_t start_ns = now_ns();
  team_.run(
      [](void* context, int64_t, Team& team) noexcept {
        const Job& my = *static_cast<const Job*>(context);
        for (int64_t i; (i = team.next_chunk(team.size())) < team.size();) {
          my.kernels->read(my.data + i * my.thread_bytes, my.thread_bytes, my.n_streams,
                           my.n_passes);
        }
      },
      &job);
  const double bytes = static_cast<double>(thread_bytes) * static_cast<double>(job.n_passes) *
                       static_cast<double>(team_.size());
  return bytes / static_cast<double>(now_ns() - start_ns);
}

double Probes::read_gbs(int64_t working_set_bytes) {
  const int64_t size = std::clamp<int64_t>(working_set_bytes, kPage, kMaxWorkingSet);
  const int64_t thread_bytes = round_up(ceil_div<int64_t>(size, team_.size()), kPage);
  const auto known = streams_.find(thread_bytes);
  if (known != streams_.end()) return time_read(thread_bytes, known->second);
  // Memory comes into the caches, then each pattern is tried a few times.
  time_read(thread_bytes, 1);
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const int n_streams : {1, 2, 4, 8}) {
      const double gbs = time_read(thread_bytes, n_streams);
      if (gbs > best) {
        best = gbs;
        streams_[thread_bytes] = n_streams;
      }
    }
  }
  return best;
}

double Probes::time_rounds(void (*kernel)(int64_t) noexcept, int64_t operations_per_round) {
  struct Job {
    void (*kernel)(int64_t) noexcept;
    int64_t n_rounds;
  };
  Job job = {kernel, 1024};
  for (;;) {
    const int64_t start_ns = now_ns();
    team_.run(
        [](void* context, int64_t, Team& team) noexcept {
          const Job& my = *static_cast<const Job*>(context);
          for (int64_t i; (i = team.next_chunk(team.size())) < team.size();) my.kernel(my.n_rounds);
        },
        &job);
    const int64_t elapsed_ns = now_ns() - start_ns;
    if (elapsed_ns >= kSampleNs / 2) {
      return static_cast<double>(operations_per_round) * static_cast<double>(job.n_rounds) *
             static_cast<double>(team_.size()) / static_cast<double>(elapsed_ns);
    }
    job.n_rounds *= 2;
  }
}

double Probes::f32_gflops() {
  return time_rounds(kernels_->multiply_add, kernels_->flops_per_round);
}

double Probes::int8_gops() {
  if (kernels_->dot_int8 == nullptr) return f32_gflops();
  return time_rounds(kernels_->dot_int8, kernels_->int8_ops_per_round);
}

}  // namespace tessera::bench
