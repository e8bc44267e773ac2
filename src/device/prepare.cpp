#include "device/prepare.hpp"

namespace tessera {

PreparedWeight prepare(Device& device, DType dtype, const Shape& shape,
                       std::span<const std::byte> bytes, const WeightUses& /*uses*/) {
  PreparedWeight weight;
  weight.buffer = device.wrap_host(bytes);
  if (!weight.buffer) {
    weight.buffer = device.allocate(static_cast<int64_t>(bytes.size()));
    device.write(*weight.buffer, 0, bytes);
    weight.extra_bytes = static_cast<int64_t>(bytes.size());
  }
  weight.tensor = Tensor::dense(dtype, shape, weight.buffer.get());
  return weight;
}

}  // namespace tessera
