#pragma once

#include "ops/webgpu_row.hpp"

namespace tessera {

/// A tensor [tokens, heads, head_dim] as a kernel addresses it, in elements or groups of `width`.
struct HeadsView {
  uint32_t first = 0, token_stride = 0, head_stride = 0;
};

/// All zeros for an absent tensor.
inline HeadsView heads_view(const Tensor& tensor, const webgpu::Capabilities& capabilities,
                            int64_t width = 1) {
  if (!tensor.defined()) return {};
  const int64_t group_bytes = width * info(tensor.dtype).block_bytes;
  return {.first = rows_view(tensor, capabilities, width).first,
          .token_stride = static_cast<uint32_t>(tensor.stride_bytes[0] / group_bytes),
          .head_stride = static_cast<uint32_t>(tensor.stride_bytes[1] / group_bytes)};
}

}  // namespace tessera
