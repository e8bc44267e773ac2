#include "cpu/device.hpp"

#include <unistd.h>

#include <cstring>

#include "base/check.hpp"
#include "base/error.hpp"
#include "cpu/queue.hpp"

namespace tessera::cpu {

/// Tells its device when it dies. The mapping itself belongs to a HostBuffer.
class CpuDevice::ProtectedBuffer final : public HostBuffer {
 public:
  ProtectedBuffer(CpuDevice& device, int64_t size_bytes)
      : HostBuffer(device, size_bytes), device_(device) {
    device_.protected_.insert(this);
    protect(false);
  }
  ~ProtectedBuffer() override { device_.protected_.erase(this); }

 private:
  CpuDevice& device_;
};

namespace {

Caps make_caps(CpuDevice::Memory memory, int n_threads) {
  Caps caps;
  caps.kind = memory == CpuDevice::Memory::kShared ? "cpu" : "mock";
  // The mock is used as a device that runs beside the host would be.
  caps.asynchronous = memory == CpuDevice::Memory::kProtected;
  caps.name = cpu_name();
  caps.memory_bytes = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  caps.parallelism = n_threads;
  return caps;
}

int threads_of(const DeviceOptions& options) {
  return options.n_threads == 0 ? available_cpus() : options.n_threads;
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options, Memory memory)
    : caps_(make_caps(memory, threads_of(options))), team_(threads_of(options)), memory_(memory) {}

CpuDevice::~CpuDevice() = default;

std::unique_ptr<Buffer> CpuDevice::allocate(int64_t size_bytes) {
  if (memory_ == Memory::kProtected) return std::make_unique<ProtectedBuffer>(*this, size_bytes);
  return std::make_unique<HostBuffer>(*this, size_bytes);
}

std::unique_ptr<Buffer> CpuDevice::wrap_host(std::span<const std::byte> bytes) {
  // Kernels read plain types through aligned pointers; a file may promise less.
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0;
  if (memory_ == Memory::kProtected || !aligned) return nullptr;
  return std::make_unique<HostBuffer>(*this, bytes);
}

void CpuDevice::write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) {
  TESSERA_DCHECK(offset_bytes >= 0 &&
                 offset_bytes + static_cast<int64_t>(bytes.size()) <= buffer.size_bytes());
  if (bytes.empty()) return;
  const MemoryAccess access(*this);
  std::memcpy(buffer.host_address() + offset_bytes, bytes.data(), bytes.size());
}

void CpuDevice::read(const Buffer& buffer, int64_t offset_bytes, std::span<std::byte> bytes) {
  TESSERA_DCHECK(offset_bytes >= 0 &&
                 offset_bytes + static_cast<int64_t>(bytes.size()) <= buffer.size_bytes());
  if (bytes.empty()) return;
  const MemoryAccess access(*this);
  std::memcpy(bytes.data(), buffer.host_address() + offset_bytes, bytes.size());
}

std::unique_ptr<Queue> CpuDevice::make_queue(const KernelTable& table, Arena& arena) {
  return std::make_unique<CpuQueue>(*this, table, arena, team_);
}

void MemoryAccess::set(bool accessible) {
  for (const HostBuffer* buffer : device_.protected_) buffer->protect(accessible);
}

DeviceKind device_kind(CpuDevice::Memory memory,
                       std::function<void(KernelTable&, const std::vector<Tier>&)> add_rows) {
  DeviceKind kind;
  kind.name = memory == CpuDevice::Memory::kShared ? "cpu" : "mock";
  kind.list = [memory] { return std::vector<Caps>{make_caps(memory, available_cpus())}; };
  kind.make = [memory](int, const DeviceOptions& options) {
    return std::make_unique<CpuDevice>(options, memory);
  };
  kind.make_table = [add_rows](const Device&, const DeviceOptions& options) {
    KernelTable table;
    add_rows(table, available_tiers(options.isa));
    return table;
  };
  return kind;
}

}  // namespace tessera::cpu
