#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/thread_team.hpp"
#include "cpu/isa.hpp"
#include "cpu/memory.hpp"
#include "device/device.hpp"
#include "device/registry.hpp"

namespace tessera::cpu {

/// The CPU as a device: host memory, one team of threads.
///
/// As the *mock* device it behaves like a GPU on the same kernels: host memory is never used in
/// place, and its buffers cannot be touched outside of a running step or a transfer (any other
/// access is a segmentation fault). Models and engine run on it in tests.
class CpuDevice final : public Device {
 public:
  enum class Memory { kShared, kProtected };

  CpuDevice(const DeviceOptions& options, Memory memory);
  ~CpuDevice() override;

  const Caps& caps() const override { return caps_; }
  std::unique_ptr<Buffer> allocate(int64_t size_bytes) override;
  std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> bytes) override;
  void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) override;
  void read(const Buffer& buffer, int64_t offset_bytes, std::span<std::byte> bytes) override;
  std::unique_ptr<Queue> make_queue(const KernelTable& table, Arena& arena) override;

 private:
  friend class MemoryAccess;
  class ProtectedBuffer;

  Caps caps_;
  ThreadTeam team_;
  Memory memory_;
  std::set<const HostBuffer*> protected_;  // live buffers of a mock device
};

/// While it lives, the device's memory may be touched.
class MemoryAccess {
 public:
  explicit MemoryAccess(CpuDevice& device) : device_(device) { set(true); }
  ~MemoryAccess() { set(false); }
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;

 private:
  void set(bool accessible);
  CpuDevice& device_;
};

/// "cpu" and "mock" for the registry; the ops room supplies the rows.
DeviceKind device_kind(CpuDevice::Memory memory,
                       std::function<void(KernelTable&, const std::vector<Tier>&)> add_rows);

}  // namespace tessera::cpu
