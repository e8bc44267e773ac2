#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "webgpu/capabilities.hpp"
#include "webgpu/context.hpp"

namespace tessera::webgpu {

/// A buffer of its own, a little larger than asked for, so that kernels may bind whole vec4s.
class GpuBuffer final : public Buffer {
 public:
  GpuBuffer(Device& device, int64_t size_bytes, BufferHandle handle, int64_t bindable_bytes)
      : Buffer(device, size_bytes), handle_(std::move(handle)), bindable_bytes_(bindable_bytes) {}

  WGPUBuffer handle() const { return handle_.get(); }
  int64_t bindable_bytes() const { return bindable_bytes_; }  ///< a multiple of 16

 private:
  BufferHandle handle_;
  int64_t bindable_bytes_;
};

/// A GPU through WebGPU.
class GpuDevice final : public Device {
 public:
  GpuDevice(int adapter_index, const ContextOptions& options);
  ~GpuDevice() override;

  const Caps& caps() const override { return caps_; }
  std::unique_ptr<Buffer> allocate(int64_t size_bytes) override;
  std::unique_ptr<Buffer> wrap_host(std::span<const std::byte>) override { return nullptr; }
  void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) override;
  void read(const Buffer& buffer, int64_t offset_bytes, std::span<std::byte> bytes) override;
  std::unique_ptr<Queue> make_queue(const KernelTable& table, Arena& arena) override;

  Context& context() { return context_; }
  const Capabilities& capabilities() const { return context_.capabilities(); }
  /// Of tunable kernels recorded from here on; the tuning must outlive them (bench tune). Tables
  /// made before know nothing of it.
  void use_tuning(const Tuning& tuning) { context_.use_tuning(tuning); }

 private:
  void read_aligned(WGPUBuffer from, int64_t offset_bytes, int64_t size_bytes,
                    const std::function<void(const std::byte*)>& use);
  void flush_writes();

  Context context_;
  Caps caps_;
  BufferHandle staging_;  // made by the first read
  int64_t unflushed_bytes_ = 0;
};

}  // namespace tessera::webgpu
