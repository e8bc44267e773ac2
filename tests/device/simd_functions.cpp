// Compiled once per tier.

#include "simd_functions.hpp"

#include "cpu/simd.hpp"

namespace tessera::TESSERA_ISA {
namespace {

template <Vec (*F)(Vec)>
void for_each(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) store(y + i, F(load(x + i)));
}

}  // namespace

SimdFunctions simd_functions() {
  return {.exp = for_each<exp>, .tanh = for_each<tanh>};
}

}  // namespace tessera::TESSERA_ISA
