#include "device/device.hpp"

#include "base/check.hpp"

namespace tessera {

std::vector<std::byte> read_tensor(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.span_bytes()));
  if (!bytes.empty()) tensor.buffer->device().read(*tensor.buffer, tensor.offset_bytes, bytes);
  return bytes;
}

void write_tensor(const Tensor& tensor, std::span<const std::byte> bytes) {
  TESSERA_DCHECK(static_cast<int64_t>(bytes.size()) == tensor.span_bytes());
  if (!bytes.empty()) tensor.buffer->device().write(*tensor.buffer, tensor.offset_bytes, bytes);
}

}  // namespace tessera
