#include "bench/gpu_probes.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "ops/cases.hpp"
#include "webgpu/queue.hpp"

namespace tessera::bench {
namespace {

constexpr int64_t kGroups = 4096, kThreads = 256;
constexpr double kFmaFlopsPerRound = 2.0 * 32 * 16 * kThreads * kGroups;  // 1.07 GFLOP

}  // namespace

GpuProbes::GpuProbes(Device& device)
    : device_(device),
      arena_(device),
      queue_(device.make_queue(no_rows_, arena_)),
      timer_(*queue_) {
  Tensor input = f32({2, 4}), output = f32({kGroups * kThreads, 4});
  for (Tensor* tensor : {&input, &output}) {
    multiply_adds_.buffers.push_back(device.allocate(tensor->span_bytes()));
    tensor->buffer = multiply_adds_.buffers.back().get();
  }
  const std::vector<float> values = {0.5f, 0.5f, 0.5f, 0.5f, 1, 1, 1, 1};  // chains stay finite
  write_tensor(input, std::as_bytes(std::span(values)));
  const auto record = [&](int64_t rounds) {
    fma_rounds_ = rounds;
    queue_->begin();
    webgpu::record(*queue_, "multiply-adds", {.file = "webgpu/fma_peak.wgsl"},
                   {webgpu::read(input), webgpu::read_write(output), webgpu::uniform()},
                   static_cast<uint32_t>(rounds), {.x = kGroups});
    multiply_adds_.step = queue_->end();
  };
  constexpr double kSampleNs = 1e6;
  record(1);
  timer_.warm_up(*multiply_adds_.step);
  record(std::max<int64_t>(1, static_cast<int64_t>(kSampleNs / run_ns(multiply_adds_))));
  nothing_ = record_copies(32, 1);
  timer_.warm_up(*multiply_adds_.step);
}

GpuProbes::~GpuProbes() = default;

double GpuProbes::run_ns(const Timed& timed) {
  return timer_.run_ns(*timed.step, timed.n);
}

double GpuProbes::f32_gflops() {
  return kFmaFlopsPerRound * static_cast<double>(fma_rounds_) / run_ns(multiply_adds_);
}

double GpuProbes::dispatch_ns() {
  return run_ns(nothing_);
}

GpuProbes::Timed GpuProbes::record_copies(int64_t bytes, int64_t sets) {
  constexpr int64_t kCopies = 50;
  Timed timed;
  timed.n = std::max(kCopies, sets);
  const Tensor values = f32({std::max<int64_t>(bytes / 32, 1), 4});  // half of the bytes
  std::vector<Tensor> from, to;
  for (int64_t i = 0; i < sets; ++i) {
    for (std::vector<Tensor>* side : {&from, &to}) {
      timed.buffers.push_back(device_.allocate(values.span_bytes()));
      side->push_back(values);
      side->back().buffer = timed.buffers.back().get();
    }
  }
  const auto n_fours = static_cast<uint32_t>(values.dim(0));
  queue_->begin();
  for (int64_t i = 0; i < timed.n; ++i) {
    const auto set = static_cast<size_t>(i % sets);
    webgpu::record(*queue_, "copy", {.file = "webgpu/copy_vec4.wgsl"},
                   {webgpu::read(from[set]), webgpu::read_write(to[set]), webgpu::uniform()},
                   n_fours,
                   webgpu::fold(ceil_div<int64_t>(n_fours, 256), webgpu::capabilities_of(*queue_)));
  }
  timed.step = queue_->end();
  return timed;
}

double GpuProbes::copy_gbs(int64_t bytes, int64_t sets) {
  const int64_t limit = 2 * webgpu::capabilities_of(*queue_).max_binding_bytes / 64 * 32;
  bytes = std::clamp<int64_t>(bytes, 64, limit) / 32 * 32;
  const auto found = copies_.find({bytes, sets});
  if (found == copies_.end()) {
    copies_.clear();  // the last size's buffers
    timer_.warm_up(
        *copies_.emplace(std::pair{bytes, sets}, record_copies(bytes, sets)).first->second.step);
  }
  return static_cast<double>(bytes) / run_ns(copies_.at({bytes, sets}));
}

}  // namespace tessera::bench
