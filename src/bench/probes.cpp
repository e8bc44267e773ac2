#include "bench/probes.hpp"

#include <sys/mman.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "bench/parts.hpp"
#include "bench/peak_kernels.hpp"
#include "bench/probe_kernels.hpp"
#include "cpu/isa.hpp"

namespace tessera::bench {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLargePage = int64_t{2} << 20;
constexpr int64_t kMaxWorkingSet = int64_t{512} << 20;
constexpr int64_t kSampleBytes = int64_t{16} << 20;  // of a thread: about a millisecond
constexpr int64_t kSampleNs = 1'000'000;
constexpr int64_t kPartNs = 50'000;  // of a thread, when the team is woken
constexpr int64_t kCacheLine = 64;
constexpr int64_t kHops = int64_t{1} << 13;  // of a latency sample: at 100 ns each 0.8 ms
constexpr int kWalks = 64;

const ProbeKernels& kernels_of(cpu::Tier tier) {
  switch (tier) {
#if defined(__x86_64__)
    case cpu::Tier::kAvx2:
      return avx2::kProbeKernels;
    case cpu::Tier::kAvx512:
      return avx512::kProbeKernels;
    case cpu::Tier::kAvx512Vnni:
      return avx512vnni::kProbeKernels;
    case cpu::Tier::kAmx:
      return amx::kProbeKernels;
#elif defined(__aarch64__)
    case cpu::Tier::kNeon:
      return neon::kProbeKernels;
    case cpu::Tier::kDotprod:
      return dotprod::kProbeKernels;
#endif
    default:
      return portable::kProbeKernels;
  }
}

#if defined(__x86_64__)

/// Bits of CPUID leaf 7; the compilers' names for them differ.
struct Features {
  bool avx512_bf16 = false, amx_bf16 = false, amx_int8 = false;
};

Features cpu_features() {
  Features features;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
  const bool tiles = (d >> 24 & 1) != 0;
  features.amx_bf16 = tiles && (d >> 22 & 1) != 0;
  features.amx_int8 = tiles && (d >> 25 & 1) != 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) features.avx512_bf16 = (a >> 5 & 1) != 0;
  return features;
}

/// Linux grants the tile registers to a process that asks.
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

const PeakKernel* peak_kernel(Peak peak) {
  switch (peak) {
    case Peak::kBf16:
      return &avx512bf16::kDotBf16;
    case Peak::kTilesBf16:
      return &tiles::kTilesBf16;
    case Peak::kTilesInt8:
      return &tiles::kTilesInt8;
    case Peak::kF32:
    case Peak::kInt8:
      break;  // of every tier its own
  }
  return nullptr;
}

#endif

}  // namespace

std::string_view name(Peak peak) {
  constexpr std::array<std::string_view, kNumPeaks> kNames = {"f32 FMA", "bf16 dot", "int8 dot",
                                                              "AMX bf16", "AMX int8"};
  return kNames[static_cast<size_t>(peak)];
}

std::string_view identifier(Peak peak) {
  constexpr std::array<std::string_view, kNumPeaks> kNames = {"f32", "bf16", "int8", "amx_bf16",
                                                              "amx_int8"};
  return kNames[static_cast<size_t>(peak)];
}

std::string_view unit(Peak peak) {
  return peak == Peak::kInt8 || peak == Peak::kTilesInt8 ? "GOP/s" : "GFLOP/s";
}

std::string missing(Peak peak) {
#if defined(__x86_64__)
  const Features features = cpu_features();
  const auto tiles = [](bool there) -> std::string {
    if (!there) return "this CPU has none";
    return tiles_granted() ? "" : "the operating system refuses the tile registers";
  };
  switch (peak) {
    case Peak::kF32:
      return {};
    case Peak::kBf16:
      return features.avx512_bf16 && cpu::runs(cpu::Tier::kAvx512) ? "" : "this CPU has none";
    case Peak::kInt8:
      return cpu::runs(cpu::Tier::kAvx2) ? "" : "this CPU has none";
    case Peak::kTilesBf16:
      return tiles(features.amx_bf16);
    case Peak::kTilesInt8:
      return tiles(features.amx_int8);
  }
  return {};
#else
  if (peak == Peak::kInt8 && cpu::runs(cpu::Tier::kDotprod)) return "";
  return peak == Peak::kF32 ? "" : "no probe for this kind of CPU";
#endif
}

/// As large as the largest working set so far; in large pages where the system has them, since the
/// ceiling is what the machine can do.
struct Probes::Memory {
  int64_t size_bytes = 0;
  std::unique_ptr<unsigned char, decltype(&std::free)> data = {nullptr, std::free};

  unsigned char* reserve(int64_t bytes) {
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

int64_t Probes::thread_bytes_of(int64_t working_set_bytes) const {
  const int64_t size = std::clamp<int64_t>(working_set_bytes, kPage, kMaxWorkingSet);
  return round_up(ceil_div<int64_t>(size, team_.size()), kPage);
}

/// A sample covers at most so much of a thread's part, the next sample what lies behind it: a large
/// set is walked through in samples that are short all the same.
Probes::Window Probes::next_window(int64_t thread_bytes) {
  const int64_t n_windows = std::max<int64_t>(1, thread_bytes / kSampleBytes);
  const int64_t bytes = thread_bytes / n_windows / (2 * kPage) * (2 * kPage);
  if (bytes == 0) return {0, thread_bytes};
  return {next_window_++ % n_windows * bytes, bytes};
}

/// Returns when all threads have run side by side, or after a while: a sleeping one takes some 50
/// us to come, and sometimes milliseconds, which a sample of a millisecond would show.
void Probes::wake_team() {
  for (const int64_t give_up_ns = now_ns() + 200 * kPartNs; now_ns() < give_up_ns;) {
    const int64_t start_ns = now_ns();
    run_parts(team_, team_.size(), [](int64_t) {
      const int64_t end_ns = now_ns() + kPartNs;
      while (now_ns() < end_ns) continue;
    });
    if (now_ns() - start_ns < kPartNs * 3 / 2) return;
  }
}

double Probes::time_read(int64_t thread_bytes, int n_streams) {
  const unsigned char* data = memory_->reserve(thread_bytes * team_.size());
  const Window window = next_window(thread_bytes);
  const int64_t n_passes = std::max<int64_t>(1, kSampleBytes / window.bytes);
  wake_team();
  const int64_t start_ns = now_ns();
  run_parts(team_, team_.size(), [&](int64_t i) {
    kernels_->read(data + i * thread_bytes + window.offset, window.bytes, n_streams, n_passes);
  });
  const double bytes = static_cast<double>(window.bytes) * static_cast<double>(n_passes) *
                       static_cast<double>(team_.size());
  return bytes / static_cast<double>(now_ns() - start_ns);
}

double Probes::read_gbs(int64_t working_set_bytes) {
  const int64_t thread_bytes = thread_bytes_of(working_set_bytes);
  const auto known = streams_.find(thread_bytes);
  if (known != streams_.end()) return time_read(thread_bytes, known->second);
  // Memory comes into the caches, then each pattern is tried a few times.
  for (int64_t done = 0; done < thread_bytes; done += kSampleBytes) time_read(thread_bytes, 1);
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

double Probes::time_copy(int64_t thread_bytes, bool bypass) {
  unsigned char* data = memory_->reserve(thread_bytes * team_.size());
  const Window window = next_window(thread_bytes);
  const int64_t half = window.bytes / 2;
  const int64_t n_passes = std::max<int64_t>(1, kSampleBytes / window.bytes);
  wake_team();
  const int64_t start_ns = now_ns();
  run_parts(team_, team_.size(), [&](int64_t i) {
    unsigned char* part = data + i * thread_bytes + window.offset;
    kernels_->copy(part + half, part, half, bypass, n_passes);
  });
  const double bytes = static_cast<double>(window.bytes) * static_cast<double>(n_passes) *
                       static_cast<double>(team_.size());
  return bytes / static_cast<double>(now_ns() - start_ns);
}

double Probes::copy_gbs(int64_t working_set_bytes) {
  // Both halves are whole pages.
  const int64_t thread_bytes = round_up(thread_bytes_of(working_set_bytes), 2 * kPage);
  const auto known = bypass_.find(thread_bytes);
  if (known != bypass_.end()) return time_copy(thread_bytes, known->second);
  for (int64_t done = 0; done < thread_bytes; done += kSampleBytes) time_copy(thread_bytes, false);
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const bool bypass : {false, true}) {
      const double gbs = time_copy(thread_bytes, bypass);
      if (gbs > best) {
        best = gbs;
        bypass_[thread_bytes] = bypass;
      }
    }
  }
  return best;
}

double Probes::latency_ns(int64_t working_set_bytes) {
  const int64_t size = std::clamp<int64_t>(working_set_bytes, kPage, kMaxWorkingSet);
  const int64_t n_lines = size / kCacheLine;
  unsigned char* data = memory_->reserve(size);
  // Every line holds the address of the next of one random cycle through all of them.
  std::vector<uint32_t> order(static_cast<size_t>(n_lines));
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  const auto line = [&](uint32_t i) { return data + int64_t{i} * kCacheLine; };
  for (size_t i = 0; i < order.size(); ++i) {
    const unsigned char* next = line(order[(i + 1) % order.size()]);
    std::memcpy(line(order[i]), &next, sizeof next);
  }
  // Each walk starts where the last one ended: a large set is never met again while still cached.
  const unsigned char* at = line(order[0]);
  double best = 0;
  for (int walk = 0; walk < kWalks; ++walk) {
    const int64_t start_ns = now_ns();
    for (int64_t hop = 0; hop < kHops; ++hop) std::memcpy(&at, at, sizeof at);
    __asm__ volatile("" : "+r"(at));
    const double ns = static_cast<double>(now_ns() - start_ns) / static_cast<double>(kHops);
    if (walk == 0 || ns < best) best = ns;
  }
  return best;
}

/// Rounds that take about a sample's time on this thread, found once. Not from the timed runs: a
/// pause of the machine would end one long before it has done enough.
int64_t Probes::rounds_of(void (*kernel)(int64_t) noexcept) {
  int64_t& n_rounds = rounds_[kernel];
  if (n_rounds > 0) return n_rounds;
  for (n_rounds = 1024;; n_rounds *= 2) {
    int64_t best_ns = INT64_MAX;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const int64_t start_ns = now_ns();
      kernel(n_rounds);
      best_ns = std::min(best_ns, now_ns() - start_ns);
    }
    if (best_ns >= kSampleNs / 2) return n_rounds;
  }
}

double Probes::time_rounds(void (*kernel)(int64_t) noexcept, int64_t operations_per_round) {
  const int64_t n_rounds = rounds_of(kernel);
  wake_team();
  const int64_t start_ns = now_ns();
  run_parts(team_, team_.size(), [&](int64_t) { kernel(n_rounds); });
  return static_cast<double>(operations_per_round) * static_cast<double>(n_rounds) *
         static_cast<double>(team_.size()) / static_cast<double>(now_ns() - start_ns);
}

double Probes::f32_gflops() {
  return time_rounds(kernels_->multiply_add, kernels_->flops_per_round);
}

double Probes::int8_gops() {
  if (kernels_->dot_int8 == nullptr) return f32_gflops();
  return time_rounds(kernels_->dot_int8, kernels_->int8_ops_per_round);
}

std::optional<double> Probes::peak_gops(Peak peak) {
  if (!missing(peak).empty()) return std::nullopt;
  if (peak == Peak::kF32) return f32_gflops();
  if (peak == Peak::kInt8) {
    if (kernels_->dot_int8 == nullptr) return std::nullopt;
    return int8_gops();
  }
#if defined(__x86_64__)
  const PeakKernel* kernel = peak_kernel(peak);
  return time_rounds(kernel->run, kernel->ops_per_round);
#else
  return std::nullopt;
#endif
}

}  // namespace tessera::bench
