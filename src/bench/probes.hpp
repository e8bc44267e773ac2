#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_team.hpp"

namespace tessera {
struct ProbeKernels;
}

namespace tessera::bench {

/// Kinds of arithmetic, each with a limit of its own.
enum class Peak { kF32, kBf16, kInt8, kTilesBf16, kTilesInt8 };
inline constexpr int kNumPeaks = 5;
std::string_view name(Peak peak);        ///< "f32 FMA", "AMX int8"
std::string_view identifier(Peak peak);  ///< "f32", "amx_int8": for programs
std::string_view unit(Peak peak);        ///< "GFLOP/s" or "GOP/s"
/// Why this machine has no such arithmetic; empty where it has. Asks the operating system for the
/// tile registers.
std::string missing(Peak peak);

/// Measures what this machine does at best with so many threads. Every call is one sample of about
/// a millisecond, to be taken in between the runs it is compared with: shared machines drift.
class Probes {
 public:
  /// `isa`: highest tier to use, as DeviceOptions::isa; 0 threads: as many as may be used.
  Probes(int n_threads, std::string_view isa);
  ~Probes();

  int n_threads() const { return team_.size(); }
  std::string_view isa() const { return isa_; }

  /// GB/s of reading a working set of about this size over and over, all threads together, each its
  /// own part, with the access pattern that was best when this size was first asked for. Sizes
  /// above 512 MiB are read as that.
  double read_gbs(int64_t working_set_bytes);
  /// GB/s of copying, bytes read and bytes written both counted; the working set is source and
  /// target together. With stores through or around the caches, whichever was better at first.
  double copy_gbs(int64_t working_set_bytes);
  /// ns of one load whose address is the result of the load before, in random order over the
  /// working set; by one thread whatever the team.
  double latency_ns(int64_t working_set_bytes);
  /// 10^9 operations a second, a multiply-add being two; nothing where `missing` says why.
  std::optional<double> peak_gops(Peak peak);
  /// GFLOP/s of f32 multiply-adds, two operations each.
  double f32_gflops();
  /// GOP/s of int8 dot products, two operations each; where the tier has none, those of f32.
  double int8_gops();

 private:
  struct Memory;
  struct Window {
    int64_t offset, bytes;
  };
  int64_t thread_bytes_of(int64_t working_set_bytes) const;
  Window next_window(int64_t thread_bytes);
  void wake_team();
  double time_read(int64_t thread_bytes, int n_streams);
  double time_copy(int64_t thread_bytes, bool bypass);
  int64_t rounds_of(void (*kernel)(int64_t) noexcept);
  double time_rounds(void (*kernel)(int64_t) noexcept, int64_t operations_per_round);

  std::string_view isa_;
  const ProbeKernels* kernels_;
  ThreadTeam team_;
  std::unique_ptr<Memory> memory_;
  int64_t next_window_ = 0;
  std::map<int64_t, int> streams_;  // best number of streams by bytes of a thread
  std::map<void (*)(int64_t) noexcept, int64_t> rounds_;  // of a sample
  std::map<int64_t, bool> bypass_;  // whether copies go around the caches, likewise
};

}  // namespace tessera::bench
