#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "device/arena.hpp"
#include "webgpu/adapter.hpp"
#include "webgpu/device.hpp"
#include "webgpu/queue.hpp"
#include "webgpu/record.hpp"

namespace tessera::webgpu {

/// First line of a test that needs an adapter.
#define TESSERA_NEEDS_ADAPTER()                                                            \
  if (adapters().empty()) {                                                                \
    GTEST_SKIP()                                                                           \
        << "no WebGPU adapter: install a Vulkan driver (mesa-vulkan-drivers) to run this"; \
  }

/// A device with memory and one queue, for tests that run single kernels.
class Gpu {
 public:
  explicit Gpu(const ContextOptions& options = {}) : device_(0, options), arena_(device_) {
    queue_ = device_.make_queue(table_, arena_);
  }

  GpuDevice& device() { return device_; }
  GpuQueue& queue() { return static_cast<GpuQueue&>(*queue_); }
  const Capabilities& capabilities() const { return device_.capabilities(); }

  /// A dense tensor with a buffer of its own that lives as long as this.
  Tensor empty(DType dtype, const Shape& shape) {
    Tensor tensor = Tensor::dense(dtype, shape);
    buffers_.push_back(device_.allocate(tensor.span_bytes()));
    tensor.buffer = buffers_.back().get();
    return tensor;
  }
  template <typename T>
  Tensor tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const Tensor tensor = empty(dtype, shape);
    write_tensor(tensor, std::as_bytes(std::span(values)));
    return tensor;
  }
  template <typename T>
  std::vector<T> values(const Tensor& tensor) {
    const std::vector<std::byte> bytes = read_tensor(tensor);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
    return result;
  }

  /// Runs one dispatch to its end. Throws whatever the device has to say.
  void run(const Kernel& kernel, std::initializer_list<Binding> bindings,
           std::span<const std::byte> uniform_bytes, const Grid& grid) {
    queue_->begin();
    record(*queue_, kernel.file, kernel, std::span(bindings.begin(), bindings.size()),
           uniform_bytes, grid);
    const std::unique_ptr<Step> step = queue_->end();
    queue_->submit(*step);
    queue_->wait().value();
  }

 private:
  GpuDevice device_;
  KernelTable table_;
  Arena arena_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

/// Bytes of u32 words, for uniforms.
inline std::vector<std::byte> words(const std::vector<uint32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace tessera::webgpu
