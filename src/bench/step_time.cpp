#include "bench/step_time.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "webgpu/queue.hpp"

namespace tessera::bench {

StepTimer::StepTimer(Queue& queue)
    : queue_(queue), on_device_(static_cast<webgpu::GpuQueue&>(queue).enable_timing()) {}

void StepTimer::warm_up(const Step& step) {
  constexpr int64_t kWarmUpNs = 30'000'000;
  const int64_t start_ns = now_ns();
  do {
    queue_.submit(step);
    queue_.wait().value();
  } while (now_ns() - start_ns < kWarmUpNs);
}

double StepTimer::run_ns(const Step& step, int64_t n) {
  const int64_t start_ns = now_ns();
  queue_.submit(step);
  queue_.wait().value();
  const auto host_ns = static_cast<double>(now_ns() - start_ns);
  const double ns = on_device_ ? static_cast<webgpu::GpuQueue&>(queue_).step_ns() : host_ns;
  return ns / static_cast<double>(n);
}

int64_t times_a_step(double work_ns, double step_ns) {
  constexpr int64_t kMost = 200;
  return std::clamp<int64_t>(static_cast<int64_t>(step_ns / std::max(work_ns, 1.0)), 1, kMost);
}

}  // namespace tessera::bench
