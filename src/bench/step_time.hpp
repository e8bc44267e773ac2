#pragma once

#include <cstdint>
#include <functional>

#include "device/queue.hpp"

namespace tessera::bench {

/// Time of work on a GPU: submitting and waiting costs far more than a kernel, so the work is
/// recorded many times into a step, and where the device can tell, its own clock is read.
class StepTimer {
 public:
  /// The queue must be that of a WebGPU device.
  explicit StepTimer(Queue& queue);

  /// Runs the step for long enough that the device leaves its resting clock, which it goes back to
  /// whenever it waits for a kernel to be compiled.
  void warm_up(const Step& step);
  /// Nanoseconds of one of the `n` times that `step` has the work.
  double run_ns(const Step& step, int64_t n);

 private:
  Queue& queue_;
  bool on_device_;
};

/// How often to record work of this length, so that a step takes about so long.
int64_t times_a_step(double work_ns, double step_ns);

}  // namespace tessera::bench
