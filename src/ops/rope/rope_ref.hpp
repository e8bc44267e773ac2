#pragma once

#include "ops/reference.hpp"
#include "ops/rope/rotation.hpp"

namespace tessera::ref {

/// Head `h` of token `t` of `heads` [T, H, d], its pairs rotated by the token's row of `rotation`
/// [T, r / 2, 2] (rope_ref.cpp).
Values rotated_head(const Tensor& heads, int64_t t, int64_t h, const Tensor& rotation,
                    RopePairing pairing);

/// Checks rotation [T, r / 2, 2] with r <= head_dim.
void check_rotation(std::string_view what, const Tensor& rotation, int64_t n_tokens,
                    int64_t head_dim);

/// 3 FLOPs a rotated value.
double rope_flops(const Tensor& rotation, int64_t n_heads);

}  // namespace tessera::ref
