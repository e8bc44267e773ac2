#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/devices.hpp"
#include "base/clock.hpp"
#include "device/registry.hpp"
#include "ops/op.hpp"

namespace tessera::bench {

inline float* floats_of(const Tensor& tensor) {
  return reinterpret_cast<float*>(tensor.buffer->host_address() + tensor.offset_bytes);
}

/// Steps of the engine's CPU kernels on tensors made here, for the exercises.
class CpuSteps {
 public:
  explicit CpuSteps(int n_threads) {
    const DeviceRegistry::Choice choice = device_registry().find("cpu");
    DeviceOptions options;
    options.n_threads = n_threads;
    device_ = choice.kind->make(choice.index, options);
    table_ = choice.kind->make_table(*device_, options);
  }

  int n_threads() const { return device_->caps().parallelism; }

  /// An f32 tensor with these values; zeros without any.
  Tensor tensor(Shape shape, const std::vector<float>& values) {
    Tensor result = Tensor::dense(DType::kF32, shape);
    buffers_.push_back(device_->allocate(result.span_bytes()));
    result.buffer = buffers_.back().get();
    for (int64_t i = 0; i < shape.count(); ++i) {
      floats_of(result)[i] = values.empty() ? 0 : values[static_cast<size_t>(i)];
    }
    return result;
  }

  /// Replaces what run() runs; several ops may be recorded.
  void record(const std::function<void(Queue&)>& ops) {
    step_.reset();
    queue_.reset();
    arena_ = std::make_unique<Arena>(*device_);
    PlanQueue plan(*device_, table_, *arena_);
    ops(plan);
    arena_->allocate();
    queue_ = device_->make_queue(table_, *arena_);
    queue_->begin();
    ops(*queue_);
    step_ = queue_->end();
  }

  /// The time in ns.
  double run() {
    const int64_t start_ns = now_ns();
    queue_->submit(*step_);
    queue_->wait().value();
    return static_cast<double>(now_ns() - start_ns);
  }

 private:
  std::unique_ptr<Device> device_;
  KernelTable table_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Step> step_;
};

}  // namespace tessera::bench
