#pragma once

#include <memory>
#include <span>

#include "device/device.hpp"

namespace tessera {

/// How a model will use a weight. One layout must serve all of them.
struct WeightUses {
  bool lookup = false;     ///< rows read by index (embedding)
  bool product = false;    ///< y = x W^T, for one row and for many
  bool exact = true;       ///< with f32 activations
  bool quantised = false;  ///< with q8 activations
};

/// A weight on the device, in the layout that was picked.
struct PreparedWeight {
  Tensor tensor;
  std::unique_ptr<Buffer> buffer;
  int64_t extra_bytes = 0;  ///< device memory beyond the file's own bytes used in place
};

/// Puts a weight `[out, in]` (or a vector) of the file on the device. Every row of today reads the
/// plain layout, so that is what it picks: in place where the device can use host memory, a copy
/// elsewhere. `bytes` must outlive the result.
PreparedWeight prepare(Device& device, DType dtype, const Shape& shape,
                       std::span<const std::byte> bytes, const WeightUses& uses);

}  // namespace tessera
