#pragma once

#include <span>

#include "device/device.hpp"

namespace tessera::cpu {

/// Device memory that is host memory.
class HostBuffer : public Buffer {
 public:
  /// A private anonymous mapping, page-aligned. Throws Error{kOutOfMemory}.
  HostBuffer(Device& device, int64_t size_bytes);
  /// Over memory of somebody else, read-only by agreement.
  HostBuffer(Device& device, std::span<const std::byte> bytes);
  ~HostBuffer() override;

  /// Forbids or allows the program to touch the memory (the mock device).
  void protect(bool accessible) const;

 private:
  bool owned_;
};

}  // namespace tessera::cpu
