#include "models/llama.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "ops/attention/paged_attention.hpp"
#include "ops/embedding/gather_rows.hpp"
#include "ops/matmul/linear_residual.hpp"
#include "ops/matmul/norm_gate_up_swiglu.hpp"
#include "ops/matmul/norm_linear_group.hpp"
#include "ops/rope/rope_kv_write.hpp"
#include "ops/sample/argmax.hpp"

namespace tessera {
namespace {

ModelFacts make_facts(const LlamaConfig& config, const LlamaWeights& weights) {
  ModelFacts facts = {.architecture = config.architecture,
                      .n_layers = config.n_layers,
                      .d_model = config.d_model,
                      .d_ff = config.d_ff,
                      .n_heads = config.n_heads,
                      .n_kv_heads = config.n_kv_heads,
                      .head_dim = config.head_dim,
                      .vocab_size = config.vocab_size,
                      .trained_context = config.trained_context,
                      .weight_type = {},
                      .rope_frequencies = rotary_frequencies(config)};
  std::map<DType, int64_t> params_of_type;
  for (const PreparedWeight& weight : weights.storage) {
    facts.n_params += weight.tensor.shape.count();
    facts.weight_bytes += weight.tensor.span_bytes();
    facts.extra_bytes += weight.extra_bytes;
    facts.has_block_weights |= is_block_format(weight.tensor.dtype);
    params_of_type[weight.tensor.dtype] += weight.tensor.shape.count();
  }
  int64_t most = -1;
  for (const auto& [dtype, n_params] : params_of_type) {
    if (n_params > most) facts.weight_type = name(dtype);
    most = std::max(most, n_params);
  }
  return facts;
}

}  // namespace

LlamaModel::LlamaModel(LlamaConfig config, LlamaWeights weights, Activations activations)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      activations_(activations),
      facts_(make_facts(config_, weights_)) {}

void LlamaModel::forward(Queue& queue, const StepState& step, const KvView& kv,
                         const StepOutputs& outputs) const {
  const int64_t n_tokens = step.token_ids.dim(0);
  // The residual stream alternates between two tensors: no op writes what it reads.
  const Slot x(queue.arena(), DType::kF32, {n_tokens, config_.d_model});
  const Slot x_attended(queue.arena(), DType::kF32, {n_tokens, config_.d_model});

  gather_rows(queue,
              {.y = x, .table = weights_.embedding, .ids = step.token_ids, .live = step.n_tokens});
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const LlamaLayer& layer = weights_.layers[i];
    attention(queue, step, layer, {kv.k_pages[i], kv.v_pages[i]}, x, x_attended);
    mlp(queue, step, layer, x_attended, x);
  }
  if (step.logit_rows.dim(0) > 0) head(queue, step, x, outputs);
}

/// y = x + attention(norm(x)).
void LlamaModel::attention(Queue& queue, const StepState& step, const LlamaLayer& layer,
                           const Pages& pages, const Tensor& x, const Tensor& y) const {
  const auto& [n_heads, n_kv_heads, head_dim] =
      std::tuple(config_.n_heads, config_.n_kv_heads, config_.head_dim);
  const int64_t n_tokens = x.dim(0);
  const Slot q(queue.arena(), DType::kF32, {n_tokens, n_heads * head_dim});
  const Slot k(queue.arena(), DType::kF32, {n_tokens, n_kv_heads * head_dim});
  const Slot v(queue.arena(), DType::kF32, {n_tokens, n_kv_heads * head_dim});
  const Slot attended(queue.arena(), DType::kF32, {n_tokens, n_heads * head_dim});
  const Tensor q_heads = q.tensor().reshaped({n_tokens, n_heads, head_dim});

  norm_linear_group(queue, {.y = {q, k, v},
                            .x = x,
                            .norm_weight = layer.attention_norm,
                            .w = {layer.q, layer.k, layer.v},
                            .bias = {layer.q_bias, layer.k_bias, layer.v_bias},
                            .live = step.n_tokens,
                            .eps = config_.norm_eps,
                            .activations = activations_});
  rope_kv_write(queue, {.q = q_heads,
                        .k_pages = pages.k,
                        .v_pages = pages.v,
                        .k = k.tensor().reshaped({n_tokens, n_kv_heads, head_dim}),
                        .v = v.tensor().reshaped({n_tokens, n_kv_heads, head_dim}),
                        .rotation = step.rotation,
                        .positions = step.positions,
                        .sequences = step.sequences,
                        .block_tables = step.block_tables,
                        .live = step.n_tokens,
                        .pairing = config_.rope_pairing});
  paged_attention(queue, {.y = attended.tensor().reshaped({n_tokens, n_heads, head_dim}),
                          .q = q_heads,
                          .k_pages = pages.k,
                          .v_pages = pages.v,
                          .positions = step.positions,
                          .sequences = step.sequences,
                          .block_tables = step.block_tables,
                          .live = step.n_tokens,
                          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                          .window = config_.sliding_window});
  linear_residual(queue, {.y = y,
                          .x = attended,
                          .w = layer.attention_output,
                          .residual = x,
                          .live = step.n_tokens,
                          .activations = activations_});
}

/// y = x + mlp(norm(x)).
void LlamaModel::mlp(Queue& queue, const StepState& step, const LlamaLayer& layer, const Tensor& x,
                     const Tensor& y) const {
  const Slot hidden(queue.arena(), DType::kF32, {x.dim(0), config_.d_ff});
  norm_gate_up_swiglu(queue, {.y = hidden,
                              .x = x,
                              .norm_weight = layer.mlp_norm,
                              .gate = layer.gate,
                              .up = layer.up,
                              .live = step.n_tokens,
                              .eps = config_.norm_eps,
                              .activations = activations_});
  linear_residual(queue, {.y = y,
                          .x = hidden,
                          .w = layer.down,
                          .residual = x,
                          .live = step.n_tokens,
                          .activations = activations_});
}

/// Logits of the rows that want them, and the likeliest token of each.
void LlamaModel::head(Queue& queue, const StepState& step, const Tensor& x,
                      const StepOutputs& outputs) const {
  const Slot rows(queue.arena(), DType::kF32, {step.logit_rows.dim(0), config_.d_model});
  gather_rows(queue, {.y = rows, .table = x, .ids = step.logit_rows, .live = step.n_logit_rows});
  norm_linear_group(queue, {.y = {outputs.logits},
                            .x = rows,
                            .norm_weight = weights_.output_norm,
                            .w = {weights_.head},
                            .live = step.n_logit_rows,
                            .eps = config_.norm_eps,
                            .activations = activations_});
  argmax(queue, {.ids = outputs.greedy_ids, .x = outputs.logits, .live = step.n_logit_rows});
}

}  // namespace tessera
