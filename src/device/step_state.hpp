#pragma once

#include "device/device.hpp"

namespace tessera {

/// What a step knows about its batch, in device memory: one small buffer that the host fills
/// before each step, so that a recorded step can be replayed. A step is recorded for a bucket of at
/// most T tokens, S sequences and R rows of logits; live tokens come first, padding behind them has
/// sequence -1.
///
/// Ops that work on rows of tokens take `live`: they neither read nor write rows behind it.
struct StepState {
  Tensor n_tokens;      ///< u32 [1]: live tokens
  Tensor n_logit_rows;  ///< u32 [1]: live entries of logit_rows
  Tensor token_ids;     ///< u32 [T]
  Tensor positions;     ///< u32 [T]: position of the token in its sequence
  Tensor sequences;     ///< i32 [T]: row of block_tables, -1 for padding
  Tensor rotation;      ///< f32 [T, rotary_dim / 2, 2]: cos and sin of the rotary angles
  Tensor block_tables;  ///< u32 [S, max_pages]: pages of each sequence, in order
  Tensor logit_rows;    ///< u32 [R]: tokens whose logits are wanted
};

}  // namespace tessera
