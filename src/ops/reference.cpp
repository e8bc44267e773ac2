#include "ops/reference.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "device/device.hpp"
#include "tensor/convert.hpp"

namespace tessera::ref {
namespace {

int64_t row_length(const Tensor& tensor) {
  return tensor.shape.rank() == 0 ? 1 : tensor.dim(-1);
}

// Through memcpy, since weights lie in files without alignment.
template <typename T>
T load(const std::byte* address, int64_t i) {
  T value;
  std::memcpy(&value, address + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

template <typename T>
void store(std::byte* address, int64_t i, T value) {
  std::memcpy(address + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
}

/// The planes of a q8 row (ops/quantize/quantize_rows.hpp): f32 scales, f32 sums, int8 values.
Values read_q8(const std::byte* address, int64_t n) {
  const std::byte* quants = address + n / 32 * 8;
  Values values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double scale = load<float>(address, i / 32);
    values[static_cast<size_t>(i)] = scale * load<int8_t>(quants, i);
  }
  return values;
}

}  // namespace

std::byte* row_address(const Tensor& tensor, int64_t row) {
  std::byte* address = host_data<std::byte>(tensor);
  for (int i = tensor.shape.rank() - 2; i >= 0; --i) {
    address += row % tensor.dim(i) * tensor.stride_bytes[static_cast<size_t>(i)];
    row /= tensor.dim(i);
  }
  return address;
}

Values read_row(const Tensor& tensor, int64_t row) {
  const int64_t n = row_length(tensor);
  const std::byte* address = row_address(tensor, row);
  if (tensor.dtype == DType::kQ8) return read_q8(address, n);
  Values values(static_cast<size_t>(n));
  if (tensor.dtype == DType::kF64) {
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = load<double>(address, i);
    return values;
  }
  std::vector<float> decoded(static_cast<size_t>(n));
  dequantize(tensor.dtype, address, decoded.data(), n);
  std::copy(decoded.begin(), decoded.end(), values.begin());
  return values;
}

Matrix read_rows(const Tensor& tensor, int64_t n_rows) {
  Matrix rows;
  for (int64_t row = 0; row < n_rows; ++row) rows.push_back(read_row(tensor, row));
  return rows;
}

void write_row(const Tensor& tensor, int64_t row, std::span<const double> values) {
  TESSERA_DCHECK(static_cast<int64_t>(values.size()) == row_length(tensor));
  std::byte* address = row_address(tensor, row);
  int64_t i = 0;
  for (const double value : values) {
    const auto rounded = static_cast<float>(value);
    switch (tensor.dtype) {
      case DType::kF64:
        store(address, i, value);
        break;
      case DType::kF32:
        store(address, i, rounded);
        break;
      case DType::kF16:
        store(address, i, f32_to_f16(rounded));
        break;
      case DType::kBF16:
        store(address, i, f32_to_bf16(rounded));
        break;
      default:
        TESSERA_DCHECK(false);
    }
    ++i;
  }
}

int64_t read_index(const Tensor& tensor, int64_t i) {
  const std::byte* address = row_address(tensor, 0);
  if (tensor.dtype == DType::kI32) return load<int32_t>(address, i);
  return load<uint32_t>(address, i);
}

void write_indices(const Tensor& tensor, int64_t row, std::span<const uint32_t> indices) {
  std::byte* address = row_address(tensor, row);
  int64_t i = 0;
  for (const uint32_t index : indices) store(address, i++, index);
}

int read_nibble(const Tensor& int4_flat, int64_t i) {
  const auto word = load<uint32_t>(host_data<std::byte>(int4_flat), i / 8);
  return static_cast<int>(word >> (4 * (i % 8)) & 15);
}

int64_t live_rows(const Tensor& live, int64_t n_rows) {
  return live.defined() ? std::min(read_index(live, 0), n_rows) : n_rows;
}

}  // namespace tessera::ref
