#pragma once

#include <array>
#include <span>

#include "ops/reference.hpp"

namespace tessera::ref {

/// 32 values as q8: what QuantizeRows specifies, in f32 arithmetic (quantize_rows_ref.cpp).
struct Q8Block {
  float scale = 0;
  float sum = 0;
  std::array<int8_t, 32> q = {};
};
Q8Block quantise_block(std::span<const float, 32> x);

/// A row rounded to f32, quantised and decoded again: what products with q8 activations see.
Values through_q8(const Values& x);

}  // namespace tessera::ref
