#pragma once

#include "ops/quantize/storage.hpp"
#include "tensor/dtype.hpp"

namespace tessera {

#define TESSERA_SAME_NUMBER(type) \
  static_assert(static_cast<int>(Storage::type) == static_cast<int>(DType::type))
TESSERA_SAME_NUMBER(kF32);
TESSERA_SAME_NUMBER(kF16);
TESSERA_SAME_NUMBER(kBF16);
TESSERA_SAME_NUMBER(kQ4_0);
TESSERA_SAME_NUMBER(kQ4_1);
TESSERA_SAME_NUMBER(kQ5_0);
TESSERA_SAME_NUMBER(kQ5_1);
TESSERA_SAME_NUMBER(kQ8_0);
TESSERA_SAME_NUMBER(kQ2_K);
TESSERA_SAME_NUMBER(kQ3_K);
TESSERA_SAME_NUMBER(kQ4_K);
TESSERA_SAME_NUMBER(kQ5_K);
TESSERA_SAME_NUMBER(kQ6_K);
#undef TESSERA_SAME_NUMBER

/// The storage of a weight type (ops/op.hpp, kWeightTypes).
constexpr Storage storage_of(DType weight_type) {
  return static_cast<Storage>(weight_type);
}

}  // namespace tessera
