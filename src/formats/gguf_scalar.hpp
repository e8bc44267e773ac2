#pragma once

#include <cstddef>

#include "formats/gguf.hpp"

namespace tessera {

/// Bytes of a number or boolean in a file; 0 for strings and arrays.
size_t gguf_scalar_bytes(GgufType type);

/// The number or boolean that lies at `source` (any alignment, little-endian).
GgufValue read_gguf_scalar(GgufType type, const std::byte* source);

}  // namespace tessera
