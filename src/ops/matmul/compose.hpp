#pragma once

#include <optional>

#include "ops/matmul/matmul.hpp"
#include "ops/norm/layernorm.hpp"
#include "ops/norm/norm.hpp"
#include "ops/norm/rmsnorm.hpp"
#include "ops/quantize/quantize_rows.hpp"

namespace tessera {

/// q8 serves weights in a block format; plain weights always see exact activations.
inline bool takes_q8(const Tensor& weight, Activations activations) {
  return activations == Activations::kQ8 && is_block_format(weight.dtype);
}

/// An input of linear layers, quantised once if any of them takes q8. Holds its arena slot.
class QuantisedInput {
 public:
  QuantisedInput(Queue& queue, const Tensor& x, const Tensor& live, bool wanted) : x_(x) {
    if (!wanted) return;
    q8_.emplace(queue.arena(), DType::kQ8, x.shape);
    quantize_rows(queue, {.y = *q8_, .x = x, .live = live});
  }
  /// What `weight` is multiplied with.
  const Tensor& for_weight(const Tensor& weight) const {
    return q8_ && is_block_format(weight.dtype) ? q8_->tensor() : x_;
  }

 private:
  Tensor x_;
  std::optional<Slot> q8_;
};

/// norm(x) of a fused contract's arguments, and its q8 form if any weight takes it.
class NormedInput {
 public:
  template <typename Args>
  NormedInput(Queue& queue, const Args& args, std::initializer_list<Tensor> weights)
      : normed_(queue.arena(), DType::kF32, args.x.shape) {
    if (args.norm == NormKind::kRms) {
      rmsnorm(queue, {.y = normed_,
                      .x = args.x,
                      .weight = args.norm_weight,
                      .live = args.live,
                      .eps = args.eps});
    } else {
      layernorm(queue, {.y = normed_,
                        .x = args.x,
                        .weight = args.norm_weight,
                        .bias = args.norm_bias,
                        .live = args.live,
                        .eps = args.eps});
    }
    bool any_q8 = false;
    for (const Tensor& weight : weights) {
      any_q8 = any_q8 || (weight.defined() && takes_q8(weight, args.activations));
    }
    input_.emplace(queue, normed_, args.live, any_q8);
  }
  const Tensor& for_weight(const Tensor& weight) const { return input_->for_weight(weight); }

 private:
  Slot normed_;
  std::optional<QuantisedInput> input_;
};

}  // namespace tessera
