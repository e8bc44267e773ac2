#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/queue.hpp"
#include "device/step_state.hpp"

namespace tessera {

/// What the engine and its users must know about a model, whatever its family.
struct ModelFacts {
  std::string architecture;  ///< as the file calls it: "llama"
  int64_t n_layers = 0;
  int64_t d_model = 0;
  int64_t d_ff = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;       ///< ids that may be looked up and sampled; padding rows left out
  int64_t trained_context = 0;  ///< tokens
  int64_t n_params = 0;
  int64_t weight_bytes = 0;              ///< in their storage types
  int64_t extra_bytes = 0;               ///< device memory beyond the file's bytes used in place
  std::string weight_type;               ///< the type that most weights are stored in
  bool has_block_weights = false;        ///< some product could take q8 activations
  std::vector<double> rope_frequencies;  ///< f64 [rotary_dim / 2]: angle per position of each pair
};

/// Pages of the KV pool, one pair of tensors a layer: [n_pages, n_kv_heads, page_tokens, head_dim].
struct KvView {
  std::span<const Tensor> k_pages;
  std::span<const Tensor> v_pages;
};

struct StepOutputs {
  Tensor logits;      ///< f32 [R, vocab_size]
  Tensor greedy_ids;  ///< u32 [R]: argmax of each row
};

/// A model of any family: immutable, shared by everything that runs it.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual const ModelFacts& facts() const = 0;

  /// Records one step: every live token is run through the model, its keys and values go to its
  /// page, and the rows that want logits get them. R = 0 leaves out the head.
  virtual void forward(Queue& queue, const StepState& step, const KvView& kv,
                       const StepOutputs& outputs) const = 0;
};

}  // namespace tessera
