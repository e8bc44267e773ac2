#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.hpp"

namespace tessera {

/// A random model that a loader must accept. The sizes given here are small enough for tests; with
/// those of a real model it serves to measure speed. Weights are scaled so that activations and
/// logits are of order 1.
struct TinyModelOptions {
  std::string arch = "llama";  ///< "llama" or "qwen2" (adds biases to q, k and v)
  /// Type of all matrices, the embedding among them; rows (d_model, d_ff and n_heads * head_dim)
  /// must be multiples of its block. Norms and biases are f32.
  DType dtype = DType::kF32;
  int d_model = 64;
  int n_layers = 2;
  int n_heads = 4;  ///< head_dim is d_model / n_heads
  int n_kv_heads = 2;
  int d_ff = 128;
  int context = 256;
  int vocab_size = 0;      ///< more tokens than tiny_vocabulary() has: filled up with "<filler N>"
  bool tied = true;        ///< no output.weight: the embedding is the head
  int sliding_window = 0;  ///< 0: no such key
  double rope_theta = 10000.0;
  std::string rope_scaling;          ///< "", "linear" or "yarn"
  double rope_scaling_factor = 4.0;  ///< original context: context / factor
  std::vector<float>
      rope_factors;  ///< not empty: rope_freqs.weight, head_dim / 2 divisors (llama3)
  std::string pretokenizer = "smollm";
  uint64_t seed = 1;
};

/// Tokens 0 to 2: `<|endoftext|>`, `<|im_start|>` (bos), `<|im_end|>` (eos); then the 256 bytes in
/// GPT-2's alphabet in byte order; then the results of a few merges.
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  ///< 1 normal, 3 control
  std::vector<std::string> merges;
};
TinyVocabulary tiny_vocabulary();

/// Writes the model; throws what GgufWriter throws, and Error{kInvalidArgument} for options that do
/// not fit together.
void write_tiny_model(const std::filesystem::path& path, const TinyModelOptions& options);

/// `count` random values of standard deviation about `deviation` and mean about 0 in any weight
/// type, as bytes. Formats that tensor/convert.hpp cannot encode get random blocks with all fields
/// in use. `state` is the random generator's and moves on.
std::vector<std::byte> random_weights(DType dtype, int64_t count, double deviation,
                                      uint64_t& state);

}  // namespace tessera
