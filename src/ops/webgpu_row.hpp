#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "ops/op.hpp"
#include "webgpu/record.hpp"

namespace tessera {

/// Threads of a workgroup that every implementation allows.
inline constexpr int64_t kWorkgroupThreads = 256;

/// A tensor as a kernel addresses it: where it starts in its binding and how far rows are apart, in
/// elements or in groups of `width` of them.
struct RowsView {
  uint32_t first = 0;
  uint32_t stride = 0;
};

/// All zeros for an absent tensor. The tensor's addresses must be multiples of `width` elements.
inline RowsView rows_view(const Tensor& tensor, const webgpu::Capabilities& capabilities,
                          int64_t width = 1) {
  if (!tensor.defined()) return {};
  const int64_t first = webgpu::first_element(tensor, capabilities);
  const int64_t stride =
      tensor.shape.rank() < 2 ? 0 : tensor.stride_bytes[0] / info(tensor.dtype).block_bytes;
  return {static_cast<uint32_t>(first / width), static_cast<uint32_t>(stride / width)};
}

/// Whether a kernel can see the whole tensor, wherever it starts, in one binding. True for an
/// absent one. Rows ask this in supports(), where tensors may have no memory yet.
inline bool fits_binding(const Tensor& tensor, const webgpu::Capabilities& capabilities) {
  return !tensor.defined() || tensor.span_bytes() + capabilities.storage_alignment_bytes <=
                                  capabilities.max_binding_bytes;
}

/// Rows of a tensor's first dimension: Tensor::slice(begin, count).
struct RowSlice {
  int64_t begin = 0, count = 0;
};

/// Parts behind the first start a multiple of this many rows into the tensor: as well aligned as
/// any kernel asks, whatever a row's (even) number of bytes.
inline constexpr int64_t kRowSliceMultiple = 64;

/// Whether row_slices can cut the tensor into parts that fit a binding.
inline bool fits_sliced(const Tensor& tensor, const webgpu::Capabilities& capabilities) {
  return fits_binding(tensor, capabilities) ||
         (tensor.shape.rank() >= 2 &&
          kRowSliceMultiple * tensor.stride_bytes[0] <=
              capabilities.max_binding_bytes - capabilities.storage_alignment_bytes);
}

/// The parts of a weight [out, in] that a kernel can see in one binding each: all of it where that
/// fits, else as few as do, recorded as a dispatch each. The tensor must pass fits_sliced.
inline std::vector<RowSlice> row_slices(const Tensor& tensor,
                                        const webgpu::Capabilities& capabilities) {
  const int64_t n_rows = tensor.shape[0];
  if (fits_binding(tensor, capabilities)) return {{0, n_rows}};
  const int64_t room = capabilities.max_binding_bytes - capabilities.storage_alignment_bytes;
  const int64_t count = room / tensor.stride_bytes[0] / kRowSliceMultiple * kRowSliceMultiple;
  std::vector<RowSlice> slices;
  for (int64_t begin = 0; begin < n_rows; begin += count) {
    slices.push_back({begin, std::min(count, n_rows - begin)});
  }
  return slices;
}

/// The values of a vector, or the columns of a matrix, that belong to rows of a weight [out, in];
/// an absent tensor stays so.
inline Tensor columns_of(Tensor tensor, const RowSlice& slice) {
  if (!tensor.defined()) return tensor;
  tensor.offset_bytes += slice.begin * info(tensor.dtype).block_bytes;
  tensor.shape = tensor.shape.rank() == 1 ? Shape{slice.count} : Shape{tensor.dim(0), slice.count};
  return tensor;
}

/// 4 when all (present) tensors can be addressed as vec4s: starts, strides and columns are
/// multiples of four elements. Else 1. Known only when the tensors have memory, so that rows take
/// either.
inline int64_t common_width(std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const int64_t step = 4 * info(tensor.dtype).block_bytes;
    const bool strided = tensor.shape.rank() >= 2 && tensor.stride_bytes[0] % step != 0;
    if (tensor.offset_bytes % step != 0 || tensor.shape[-1] % 4 != 0 || strided) return 1;
  }
  return 4;
}

}  // namespace tessera
