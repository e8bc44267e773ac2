#pragma once

#include <string>

#include "ops/webgpu_row.hpp"

namespace tessera {

/// A matrix of weights as weight_four.wgsl addresses it: in bytes.
struct WeightView {
  uint32_t first_byte = 0;
  uint32_t row_bytes = 0;  ///< from one row to the next
};

inline WeightView weight_view(const Tensor& weight, const webgpu::Capabilities& capabilities) {
  return {static_cast<uint32_t>(weight.offset_bytes % capabilities.storage_alignment_bytes),
          static_cast<uint32_t>(weight.stride_bytes[0])};
}

/// The value of WEIGHT.
inline webgpu::TemplateValue weight_value(const Tensor& weight) {
  return std::string(name(weight.dtype));
}

}  // namespace tessera
