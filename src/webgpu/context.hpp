#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "webgpu/capabilities.hpp"
#include "webgpu/handle.hpp"
#include "webgpu/kernel.hpp"

namespace tessera::webgpu {

struct ContextOptions {
  bool default_limits = false;  ///< ask for no more than every implementation has; core tier only
  bool runtime_checks = false;  ///< shaders with bounds checks and bounded loops
  const Tuning* tuning = nullptr;  ///< instead of that of the adapter's family
};

/// A kernel that was compiled for a device.
struct Pipeline {
  std::string label;
  ComputePipeline handle;
  BindGroupLayout layout;
};

struct BindingLayout {
  BindingKind kind;
  int64_t min_bytes;  ///< what every bind group gives at least
};

/// One WebGPU device: its queue, its compiled kernels, and the errors that it reports. Errors come
/// through callbacks, often long after the call that caused them: the first one is kept until
/// somebody asks. Not thread-safe, except for the callbacks.
class Context {
 public:
  /// Throws Error{kInvalidArgument} when there is no such adapter, {kUnsupported} when it refuses.
  Context(int adapter_index, const ContextOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  WGPUDevice device() const { return device_.get(); }
  WGPUQueue queue() const { return queue_.get(); }
  const Capabilities& capabilities() const { return capabilities_; }
  void use_tuning(const Tuning& tuning) { capabilities_.tuning = &tuning; }
  const std::string& name() const { return name_; }

  /// Compiles on first use. Throws Error{kDevice} with the label, the compiler's message and the
  /// line of the expanded text.
  const Pipeline& pipeline(const Kernel& kernel, const std::vector<BindingLayout>& bindings);

  /// Runs `call` and throws what it makes the device report, as an error of `label`.
  template <typename F>
  auto guarded(const std::string& label, F&& call) {
    push_scopes();
    auto result = call();
    pop_scopes(label);
    return result;
  }

  BufferHandle make_buffer(const std::string& label, int64_t size_bytes, WGPUBufferUsage usage);

  /// The first error since the last call; a lost device reports itself every time.
  Status take_error();
  /// Blocks until everything that was submitted is done.
  void wait();
  /// Blocks until one submission, and what came before it, is done.
  void wait_for(uint64_t submission);

 private:
  void poll(const uint64_t* submission);
  void request_device(WGPUAdapter adapter, const WGPULimits& limits);
  void record_error(ErrorKind kind, std::string message);
  void push_scopes();
  void pop_scopes(const std::string& label);
  Pipeline compile(const Kernel& kernel, const std::vector<BindingLayout>& bindings);
  BindGroupLayout make_layout(const std::string& label, const std::vector<BindingLayout>& bindings);
  ShaderModule make_module(const std::string& label, const std::string& source);

  ContextOptions options_;
  std::string name_;
  Capabilities capabilities_;
  std::mutex error_mutex_;  // callbacks may come from a thread of the driver
  std::optional<Error> error_;
  bool lost_ = false;
  bool closing_ = false;
  std::map<std::string, Pipeline> pipelines_;
  DeviceHandle device_;
  QueueHandle queue_;
};

}  // namespace tessera::webgpu
