#include "tensor/tensor.hpp"

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"

namespace tessera {

Shape::Shape(std::initializer_list<int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  TESSERA_DCHECK(sizes.size() <= kMaxDims);
  size_t i = 0;
  for (const int64_t size : sizes) sizes_[i++] = size;
}

std::optional<int64_t> Shape::checked_count() const {
  int64_t count = 1;
  for (int i = 0; i < rank_; ++i) {
    if ((*this)[i] < 0) return std::nullopt;
    const auto product = checked_mul(count, (*this)[i]);
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

int64_t Shape::count() const {
  int64_t count = 1;
  for (int i = 0; i < rank_; ++i) count *= (*this)[i];
  return count;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + "]";
}

Tensor Tensor::dense(DType dtype, Shape shape, Buffer* buffer, int64_t offset_bytes) {
  Tensor tensor = {.dtype = dtype, .shape = shape, .buffer = buffer, .offset_bytes = offset_bytes};
  const auto row = row_bytes(dtype, shape.rank() == 0 ? 1 : shape[-1]);
  if (!row || !shape.checked_count()) {
    fail(ErrorKind::kInvalidArgument, "", "a {} tensor cannot have shape {}", name(dtype),
         shape.to_string());
  }
  int64_t stride = *row;
  for (int i = shape.rank() - 2; i >= 0; --i) {
    tensor.stride_bytes[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return tensor;
}

int64_t Tensor::n_rows() const {
  int64_t count = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) count *= shape[i];
  return count;
}

int64_t Tensor::span_bytes() const {
  if (shape.count() == 0) return 0;
  int64_t bytes = row_bytes(dtype, shape.rank() == 0 ? 1 : shape[-1]).value_or(0);
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    bytes += (shape[i] - 1) * stride_bytes[static_cast<size_t>(i)];
  }
  return bytes;
}

bool Tensor::is_dense() const {
  return stride_bytes == dense(dtype, shape).stride_bytes;
}

Tensor Tensor::slice(int64_t begin, int64_t count) const {
  TESSERA_DCHECK(shape.rank() >= 1 && begin >= 0 && count >= 0 && begin + count <= shape[0]);
  Tensor part = *this;
  const int64_t stride = shape.rank() == 1 ? info(dtype).block_bytes : stride_bytes[0];
  part.offset_bytes += begin * stride;
  switch (shape.rank()) {
    case 1:
      part.shape = {count};
      break;
    case 2:
      part.shape = {count, shape[1]};
      break;
    case 3:
      part.shape = {count, shape[1], shape[2]};
      break;
    default:
      part.shape = {count, shape[1], shape[2], shape[3]};
      break;
  }
  return part;
}

Tensor Tensor::reshaped(Shape new_shape) const {
  TESSERA_DCHECK(is_dense() && new_shape.count() == shape.count());
  Tensor other = dense(dtype, new_shape, buffer, offset_bytes);
  other.layout = layout;
  return other;
}

}  // namespace tessera
