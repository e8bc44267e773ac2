#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.hpp"

// What the references share: tensors in host memory, seen as rows of f64. A row is the last
// dimension; the others are counted through, outermost first, strides honoured.
//
// An f64 tensor may stand wherever a contract says f32: the tests hand in f64 copies to get results
// that were never rounded. `validate` still refuses them, so no device sees one.

namespace tessera::ref {

using Values = std::vector<double>;
using Matrix = std::vector<Values>;  // rows

/// Where a row begins.
std::byte* row_address(const Tensor& tensor, int64_t row);
/// One row, decoded: every storage type but flat int4. A vector is row 0 of itself.
Values read_row(const Tensor& tensor, int64_t row);
inline Values read_vector(const Tensor& vector) {
  return read_row(vector, 0);
}
/// The first `n_rows` rows.
Matrix read_rows(const Tensor& tensor, int64_t n_rows);

/// Stores a row as f64, f32, f16 or bf16; the 16-bit types round the f32 value to nearest even.
void write_row(const Tensor& tensor, int64_t row, std::span<const double> values);

/// Value `i` of the first row of a u32 or i32 tensor.
int64_t read_index(const Tensor& tensor, int64_t i);
/// Stores indices as a row of a u32 tensor.
void write_indices(const Tensor& tensor, int64_t row, std::span<const uint32_t> indices);
/// Nibble `i` of flat int4: bits 4 (i mod 8) of word i / 8.
int read_nibble(const Tensor& int4_flat, int64_t i);

/// How many of `n_rows` rows are in use: all of them when `live` was left out.
int64_t live_rows(const Tensor& live, int64_t n_rows);

}  // namespace tessera::ref
