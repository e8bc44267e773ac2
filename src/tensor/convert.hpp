#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"

namespace tessera {

/// IEEE binary16 and bfloat16, by bit pattern; to 16 bits they round to nearest even and keep NaN.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

/// Plain scalar decoding of `n` values of any storage type to f32: the specification of each
/// format (checked against gguf-py). `n` is a multiple of the block size. kQ8 and kInt4Flat are not
/// self-contained blocks and are not accepted here.
void dequantize(DType dtype, const void* source, float* target, int64_t n);

/// True for the block formats that encode() can write: q4_0, q4_1, q5_0, q8_0.
bool can_encode(DType dtype);

/// Round-to-nearest encoding of `n` f32 values, also to f16 and bf16. Finite input gives finite
/// output: a value beyond f16's range saturates the block's scale.
void encode(DType dtype, const float* source, void* target, int64_t n);

}  // namespace tessera
