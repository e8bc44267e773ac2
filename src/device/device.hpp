#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.hpp"

namespace tessera {

class Arena;
class Device;
class KernelTable;
class Queue;

/// Device memory. What the bytes mean is told by the tensors that point into it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return device_; }
  int64_t size_bytes() const { return size_bytes_; }
  /// Where kernels that run on the host find the bytes; null on devices with memory of their own.
  std::byte* host_address() const { return host_address_; }

 protected:
  Buffer(Device& device, int64_t size_bytes, std::byte* host_address = nullptr)
      : device_(device), size_bytes_(size_bytes), host_address_(host_address) {}

 private:
  Device& device_;
  int64_t size_bytes_;
  std::byte* host_address_;
};

/// What a device offers, as far as kernels and memory estimates ask.
struct Caps {
  std::string kind;              ///< "cpu", "mock", "webgpu", "cuda"
  std::string name;              ///< as the vendor calls it
  int64_t memory_bytes = 0;      ///< available to us; 0 when unknown
  int parallelism = 1;           ///< threads of the team, or multiprocessors
  int64_t alignment_bytes = 64;  ///< of every buffer and arena slot
  bool asynchronous = false;     ///< submit() returns while the step still runs
  /// Kernels may assume that inputs are finite (WGSL): with others they only stay within bounds.
  bool finite_math = false;
  std::vector<std::string> features = {};  ///< capability tiers and limits, for people
};

/// Makes buffers and queues. Loading and reading back are synchronous and may be called from one
/// thread at a time, while no step runs.
class Device {
 public:
  virtual ~Device() = default;

  virtual const Caps& caps() const = 0;

  /// Uninitialised memory; throws Error{kOutOfMemory} with the bytes asked for.
  virtual std::unique_ptr<Buffer> allocate(int64_t size_bytes) = 0;

  /// A buffer over host memory that outlives it, used in place; nullptr when this device cannot
  /// (then allocate and write).
  virtual std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> bytes) = 0;

  virtual void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) = 0;
  virtual void read(const Buffer& buffer, int64_t offset_bytes, std::span<std::byte> bytes) = 0;

  virtual std::unique_ptr<Queue> make_queue(const KernelTable& table, Arena& arena) = 0;
};

/// Address of a tensor's first value in host memory; null for an absent tensor. Only kernels and
/// references may follow it, while a step runs.
template <typename T>
T* host_data(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return reinterpret_cast<T*>(tensor.buffer->host_address() + tensor.offset_bytes);
}

/// Host copies of a tensor's bytes: all of a dense tensor.
std::vector<std::byte> read_tensor(const Tensor& tensor);
void write_tensor(const Tensor& tensor, std::span<const std::byte> bytes);

}  // namespace tessera
