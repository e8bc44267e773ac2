#include "cpu/memory.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.hpp"

namespace tessera::cpu {
namespace {

size_t mapped_length(int64_t size_bytes) {
  return static_cast<size_t>(std::max<int64_t>(size_bytes, 1));
}

std::byte* map_memory(const Device& device, int64_t size_bytes) {
  if (size_bytes < 0) {
    fail(ErrorKind::kInvalidArgument, "allocate", "a buffer cannot have {} bytes", size_bytes);
  }
  const size_t length = mapped_length(size_bytes);
  void* mapping =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    fail(ErrorKind::kOutOfMemory, device.caps().kind,
         "cannot allocate {} bytes; use a smaller context or model", size_bytes);
  }
  // Large pages save address translation in the KV cache and activations; a hint, no more.
  if (length >= size_t{4} << 20) ::madvise(mapping, length, MADV_HUGEPAGE);
  return static_cast<std::byte*>(mapping);
}

}  // namespace

HostBuffer::HostBuffer(Device& device, int64_t size_bytes)
    : Buffer(device, size_bytes, map_memory(device, size_bytes)), owned_(true) {}

HostBuffer::HostBuffer(Device& device, std::span<const std::byte> bytes)
    // Kernels only read weights; the buffer type knows no const.
    : Buffer(device, static_cast<int64_t>(bytes.size()), const_cast<std::byte*>(bytes.data())),
      owned_(false) {}

HostBuffer::~HostBuffer() {
  if (owned_) ::munmap(host_address(), mapped_length(size_bytes()));
}

void HostBuffer::protect(bool accessible) const {
  ::mprotect(host_address(), mapped_length(size_bytes()),
             accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace tessera::cpu
