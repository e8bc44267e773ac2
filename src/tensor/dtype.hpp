#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// Storage types: a closed list. Block formats hold `block_size` values in `block_bytes` bytes and
/// exist only as `[out_features, in_features]` rows grouped along in_features. Their bit layouts
/// are those of GGUF (tensor/blocks.hpp).
enum class DType : uint8_t {
  kNone,  ///< no tensor: an optional argument that was not given
  kF32,
  kF16,
  kBF16,
  kF64,  ///< references only
  kI8,
  kI32,
  kU32,
  kQ8,  ///< quantised activations: see ops/quantize/quantize_rows.hpp for the row layout
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kInt4Flat,  ///< the seeds' flat int4 [K,N]: 8 nibbles a u32; scales and zeros are tensors apart
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kInt4Flat) + 1;

struct DTypeInfo {
  std::string_view name;  ///< lower case, as printed and parsed: "f32", "q4_1", "q6_k"
  int block_size;         ///< values a block; 1 for plain types
  int block_bytes;
};

const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) {
  return info(dtype).name;
}
inline bool is_block_format(DType dtype) {
  return info(dtype).block_size > 1;
}

/// The type of that name, or nullopt.
std::optional<DType> dtype_from_name(std::string_view name);

/// Bytes of `n` values in a row; nullopt when `n` is negative, is no multiple of the block size,
/// or when the product overflows.
std::optional<int64_t> row_bytes(DType dtype, int64_t n);

}  // namespace tessera
