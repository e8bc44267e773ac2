#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/thread_team.hpp"

namespace tessera {
struct ProbeKernels;
}

namespace tessera::bench {

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
  /// GFLOP/s of f32 multiply-adds, two operations each.
  double f32_gflops();
  /// GOP/s of int8 dot products, two operations each; where the tier has none, those of f32.
  double int8_gops();

 private:
  struct Memory;
  double time_read(int64_t thread_bytes, int n_streams);
  double time_rounds(void (*kernel)(int64_t) noexcept, int64_t operations_per_round);

  std::string_view isa_;
  const ProbeKernels* kernels_;
  ThreadTeam team_;
  std::unique_ptr<Memory> memory_;
  std::map<int64_t, int> streams_;  // best number of streams by bytes of a thread
};

}  // namespace tessera::bench
