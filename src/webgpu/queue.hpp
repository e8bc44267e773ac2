#pragma once

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "webgpu/device.hpp"
#include "webgpu/record.hpp"

namespace tessera::webgpu {

/// A recorded step: dispatches in order, and one buffer with the uniforms of all of them.
class GpuStep final : public Step {
 public:
  struct Dispatch {
    const Pipeline* pipeline;
    BindGroup group;
    std::optional<uint32_t> uniform_offset;
    uint32_t x, y, z;
  };
  std::vector<Dispatch> dispatches;
  BufferHandle uniforms;
};

/// Records dispatches and runs a step as one encoder, one pass, one submit. Between dependent
/// dispatches the implementation puts barriers by itself.
class GpuQueue final : public Queue {
 public:
  GpuQueue(GpuDevice& device, const KernelTable& table, Arena& arena);
  ~GpuQueue() override;

  void begin() override;
  std::unique_ptr<Step> end() override;
  void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void request(const Tensor& tensor) override;
  void submit(const Step& step) override;
  Status receive(std::span<std::byte> bytes) override;
  Status wait() override;

  void record(std::string_view label, const Kernel& kernel, std::span<const Binding> bindings,
              std::span<const std::byte> uniform_bytes, const Grid& grid);

  /// Steps submitted from here on measure the time that the device spends on them. False where it
  /// cannot.
  bool enable_timing();
  /// Of the last step that was submitted and waited for.
  double step_ns();

 private:
  struct Recorded {
    const Pipeline* pipeline;
    std::vector<Binding> bindings;
    std::string label;
    int64_t uniform_offset;
    int64_t uniform_bytes;
    Grid grid;
  };
  /// A request(), from asking to receiving; its staging buffer is used again.
  struct Reply {
    Tensor tensor;
    BufferHandle staging;
    int64_t staging_bytes = 0;
    uint64_t submission = 0;
    bool mapped = false;
    std::string message;
  };
  void map(Reply& reply);
  void check(std::string_view label, std::span<const Binding> bindings, const Grid& grid) const;
  BindGroup make_group(const Recorded& recorded, WGPUBuffer uniforms) const;

  GpuDevice& gpu_;
  std::vector<Recorded> recorded_;
  std::vector<std::byte> uniform_data_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // to, from: before the next step
  std::list<Reply> free_replies_, requested_, submitted_;
  QuerySet queries_;
  std::unique_ptr<Buffer> query_results_;
};

}  // namespace tessera::webgpu
