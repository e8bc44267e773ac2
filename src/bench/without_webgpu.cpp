// What the benches ask of a WebGPU device, in a build that has none.
#include "base/error.hpp"
#include "bench/gpu_probes.hpp"
#include "bench/tune.hpp"

namespace tessera::bench {
namespace {

[[noreturn]] void refuse() {
  fail(ErrorKind::kUnsupported, "bench", "expected a build with WebGPU");
}

}  // namespace

nlohmann::ordered_json run_tune(const DeviceRegistry::Choice& choice, const TuneOptions&,
                                const std::function<void(const TuneRow&)>&) {
  fail(ErrorKind::kUnsupported, "bench tune",
       "the kernels of '{}' have no configurations; expected --device webgpu in a build with it",
       choice.kind->name);
}

StepTimer::StepTimer(Queue& queue) : queue_(queue), on_device_(false) {
  refuse();
}
void StepTimer::warm_up(const Step&) {
  refuse();
}
double StepTimer::run_ns(const Step&, int64_t) {
  refuse();
}
int64_t times_a_step(double, double) {
  refuse();
}

GpuProbes::GpuProbes(Device& device)
    : device_(device), arena_(device), queue_(nullptr), timer_(*queue_) {}
GpuProbes::~GpuProbes() = default;
double GpuProbes::f32_gflops() {
  refuse();
}
double GpuProbes::copy_gbs(int64_t, int64_t) {
  refuse();
}
double GpuProbes::dispatch_ns() {
  refuse();
}

}  // namespace tessera::bench
