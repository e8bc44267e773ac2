#pragma once

#include <map>
#include <memory>
#include <vector>

#include "bench/row.hpp"
#include "bench/step_time.hpp"
#include "device/arena.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"

namespace tessera::bench {

/// What a WebGPU device does at best. Every call is one sample, to be taken in between the runs
/// that it is compared with.
class GpuProbes {
 public:
  explicit GpuProbes(Device& device);
  ~GpuProbes();

  /// GFLOP/s of f32 multiply-adds that wait for nothing.
  double f32_gflops();
  /// GB/s of copying, reads and writes together, so that this many bytes move in a dispatch. `sets`
  /// of buffers in turn, as the kernel has that it is compared with.
  double copy_gbs(int64_t bytes, int64_t sets);
  /// Of a dispatch that does next to nothing.
  double dispatch_ns();

 private:
  /// Work, recorded so often.
  struct Timed {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::unique_ptr<Step> step;
    int64_t n = 1;
  };
  Timed record_copies(int64_t bytes, int64_t sets);
  double run_ns(const Timed& timed);

  Device& device_;
  KernelTable no_rows_;
  Arena arena_;
  std::unique_ptr<Queue> queue_;
  StepTimer timer_;
  Timed multiply_adds_, nothing_;
  int64_t fma_rounds_ = 1;
  std::map<std::pair<int64_t, int64_t>, Timed> copies_;
};

}  // namespace tessera::bench
