#pragma once

#include <webgpu.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "webgpu/context.hpp"
#include "webgpu/fixed_kernels.hpp"

namespace tessera::webgpu {

/// What goes into one binding: f32, u32 or f16 values as they lie in memory.
using Bytes = std::vector<std::byte>;

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Drives a file with a fixed interface with nothing but its table: webgpu.h, a pipeline whose
/// layout the compiler derives from the file, storage bindings of exactly the size of their values
/// inside larger buffers full of NaN, and a uniform buffer of exactly the size of its words.
class FixedKernelRunner {
 public:
  explicit FixedKernelRunner(const ContextOptions& options);
  ~FixedKernelRunner();

  const Context& context() const { return context_; }

  /// One dispatch on fresh buffers. Returns the bindings' contents afterwards; fails the running
  /// test when a byte around a binding, or of a binding that is only read, has changed.
  std::vector<Bytes> run(const FixedKernel& kernel, const std::vector<uint32_t>& uniform,
                         const std::vector<Bytes>& bindings, const Grid& grid);

  /// Compiled on first use. Throws what the compiler has to say.
  WGPUComputePipeline pipeline(const FixedKernel& kernel);

 private:
  bool runtime_checks_;
  Context context_;
  std::map<std::string, WGPUComputePipeline> pipelines_;
};

}  // namespace tessera::webgpu
