#pragma once

#include <vector>

#include "device/prepare.hpp"
#include "tensor/tensor.hpp"

namespace tessera {

/// Matrices are [out_features, in_features] of any weight type, norms and biases f32 vectors.
struct LlamaLayer {
  Tensor attention_norm;          // [d_model]
  Tensor q, k, v;                 // [n_heads * head_dim, d_model], [n_kv_heads * head_dim, d_model]
  Tensor q_bias, k_bias, v_bias;  // absent in most models
  Tensor attention_output;        // [d_model, n_heads * head_dim]
  Tensor mlp_norm;                // [d_model]
  Tensor gate, up;                // [d_ff, d_model]
  Tensor down;                    // [d_model, d_ff]
};

struct LlamaWeights {
  Tensor embedding;    // [vocab_size, d_model]
  Tensor output_norm;  // [d_model]
  Tensor head;         // [vocab_size, d_model]: the embedding itself where the two are tied
  std::vector<LlamaLayer> layers;
  std::vector<PreparedWeight> storage;  // what the tensors point into
};

}  // namespace tessera
