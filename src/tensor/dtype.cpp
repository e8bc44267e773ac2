#include "tensor/dtype.hpp"

#include <array>

#include "base/checked.hpp"
#include "tensor/blocks.hpp"

namespace tessera {
namespace {

constexpr std::array<DTypeInfo, kNumDTypes> kInfo = {{
    {"none", 1, 0},
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"f64", 1, 8},
    {"i8", 1, 1},
    {"i32", 1, 4},
    {"u32", 1, 4},
    {"q8", 32, 40},
    {"q4_0", 32, sizeof(BlockQ4_0)},
    {"q4_1", 32, sizeof(BlockQ4_1)},
    {"q5_0", 32, sizeof(BlockQ5_0)},
    {"q5_1", 32, sizeof(BlockQ5_1)},
    {"q8_0", 32, sizeof(BlockQ8_0)},
    {"q2_k", 256, sizeof(BlockQ2_K)},
    {"q3_k", 256, sizeof(BlockQ3_K)},
    {"q4_k", 256, sizeof(BlockQ4_K)},
    {"q5_k", 256, sizeof(BlockQ5_K)},
    {"q6_k", 256, sizeof(BlockQ6_K)},
    {"int4_flat", 8, 4},
}};

}  // namespace

const DTypeInfo& info(DType dtype) {
  return kInfo[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 1; i < kNumDTypes; ++i) {
    if (kInfo[static_cast<size_t>(i)].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<int64_t> row_bytes(DType dtype, int64_t n) {
  const DTypeInfo& type = info(dtype);
  if (n < 0 || n % type.block_size != 0) return std::nullopt;
  return checked_mul<int64_t>(n / type.block_size, type.block_bytes);
}

}  // namespace tessera
