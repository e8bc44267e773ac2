#pragma once

// Storage types by number, for kernels compiled for one instruction set (plain data only). The
// numbers are those of DType (tensor/dtype.hpp); storage_of.hpp checks that they agree.

#include <stdint.h>

namespace tessera {

enum class Storage : int32_t {
  kF32 = 1,
  kF16 = 2,
  kBF16 = 3,
  kQ4_0 = 9,
  kQ4_1 = 10,
  kQ5_0 = 11,
  kQ5_1 = 12,
  kQ8_0 = 13,
  kQ2_K = 14,
  kQ3_K = 15,
  kQ4_K = 16,
  kQ5_K = 17,
  kQ6_K = 18,
};

}  // namespace tessera
