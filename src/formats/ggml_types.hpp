#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/dtype.hpp"

namespace tessera {

/// A tensor type of GGUF: its number in files, its name there, and the size of its blocks.
struct GgmlType {
  uint32_t id;
  std::string_view name;
  DType dtype;  ///< kNone: tessera cannot compute with it, but can tell its size
  int block_size;
  int block_bytes;
};

/// nullptr for numbers that no current GGUF type has (removed types among them).
const GgmlType* find_ggml_type(uint32_t id);

/// The GGUF type that stores `dtype`; nullptr when none does.
const GgmlType* ggml_type_of(DType dtype);

/// "F32, F16, Q4_0, ...": the types that tessera can compute with.
std::string supported_ggml_types();

}  // namespace tessera
