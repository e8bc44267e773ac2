#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/rope/rotation.hpp"

namespace tessera {

/// Sizes and constants of the Llama family (Touvron et al. 2023) and its near relatives: pre-norm
/// blocks of grouped-query attention and SwiGLU, RMS norm, rotary positions.
struct LlamaConfig {
  std::string architecture;
  int64_t n_layers = 0;
  int64_t d_model = 0;
  int64_t d_ff = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t trained_context = 0;
  int64_t sliding_window = 0;  ///< positions that a token sees, its own included; 0: all before it
  float norm_eps = 1e-5f;
  RopeSpec rope;
  RopePairing rope_pairing = RopePairing::kInterleaved;
  std::vector<float> rope_factors;  ///< divisors of the frequencies (llama3); empty: none
};

/// Throws Error{kInvalidFile} naming the key when the sizes contradict each other. `where` is the
/// file; ranges of single values were checked when they were read.
void validate(const LlamaConfig& config, const std::string& where);

/// Angle per position of each rotary pair, factors applied; f64 [rotary_dim / 2].
std::vector<double> rotary_frequencies(const LlamaConfig& config);

}  // namespace tessera
