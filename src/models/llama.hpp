#pragma once

#include "models/config.hpp"
#include "models/language_model.hpp"
#include "models/weights.hpp"
#include "ops/op.hpp"

namespace tessera {

/// Llama 2 and 3, SmolLM2, TinyLlama, Mistral; with half-split rotary pairs and biases on q, k and
/// v also Qwen2.
class LlamaModel final : public LanguageModel {
 public:
  LlamaModel(LlamaConfig config, LlamaWeights weights, Activations activations);

  const ModelFacts& facts() const override { return facts_; }
  void forward(Queue& queue, const StepState& step, const KvView& kv,
               const StepOutputs& outputs) const override;

 private:
  struct Pages {
    Tensor k, v;
  };
  void attention(Queue& queue, const StepState& step, const LlamaLayer& layer, const Pages& pages,
                 const Tensor& x, const Tensor& y) const;
  void mlp(Queue& queue, const StepState& step, const LlamaLayer& layer, const Tensor& x,
           const Tensor& y) const;
  void head(Queue& queue, const StepState& step, const Tensor& x, const StepOutputs& outputs) const;

  LlamaConfig config_;
  LlamaWeights weights_;
  Activations activations_;
  ModelFacts facts_;
};

}  // namespace tessera
