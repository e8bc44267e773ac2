#pragma once

#include "ops/attention/attention.hpp"
#include "ops/attention/paged_attention.hpp"
#include "ops/webgpu_row.hpp"

// What `attention` and `paged_attention` share on WebGPU: the same kernels over dense keys or
// pages.

namespace tessera {

/// Tokens that a kernel takes: all; those whose sequence has no other token beside them (decoding);
/// or the others (prompts).
enum class TokenSet : uint8_t { kAll, kLone, kRuns };

/// The arguments of either contract. Dense: positions, sequences, tables and live are absent.
struct AttentionCall {
  Tensor y, q, k, v;
  Tensor positions, sequences, tables, live;
  float scale = 1;
  float soft_cap = 0;
  int64_t window = 0;
  int64_t position_offset = 0;  ///< dense
  bool causal = true;
  TokenSet tokens = TokenSet::kAll;  ///< of pages

  bool paged() const { return tables.defined(); }
  int64_t n_tokens() const { return q.dim(0); }
  int64_t n_heads() const { return q.dim(1); }
  int64_t head_dim() const { return q.dim(2); }
  int64_t n_kv_heads() const { return k.dim(1); }
  /// No query sees more keys.
  int64_t max_keys() const { return paged() ? tables.dim(1) * k.dim(2) : k.dim(0); }
};
AttentionCall attention_call(const Attention::Args& args);
AttentionCall attention_call(const PagedAttention::Args& args);

/// Few queries and few keys: a workgroup for each head (attention_heads.wgsl).
bool supports_attention_heads(const AttentionCall& call, const webgpu::Capabilities& capabilities);
void record_attention_heads(Queue& queue, std::string_view op, const AttentionCall& call);

/// Few queries: chunks of keys side by side (attention_chunks.wgsl), then merged.
bool supports_attention_chunks(const AttentionCall& call, const webgpu::Capabilities& capabilities);
int64_t attention_chunks_scratch_bytes(const AttentionCall& call);
void record_attention_chunks(Queue& queue, std::string_view op, const AttentionCall& call,
                             const Tensor& scratch);

/// Many queries: tiles of queries and keys (attention_tiles.wgsl).
bool supports_attention_tiles(const AttentionCall& call, const webgpu::Capabilities& capabilities);
void record_attention_tiles(Queue& queue, std::string_view op, const AttentionCall& call);

/// Prompts and decoding sequences in one batch: lone tokens as chunks, the others as tiles.
bool supports_mixed_attention(const AttentionCall& call, const webgpu::Capabilities& capabilities);
void record_mixed_attention(Queue& queue, std::string_view op, const AttentionCall& call,
                            const Tensor& scratch);

/// The rows of either contract, best first.
template <typename Op>
void add_attention_rows(KernelTable& table, const webgpu::Capabilities& capabilities) {
  using Args = typename Op::Args;
  table.add<Op>({
      .name = "heads",
      .supports =
          [=](const Args& args, const Caps&) {
            return supports_attention_heads(attention_call(args), capabilities);
          },
      .run = [](Queue& queue, const Args& args,
                const Tensor&) { record_attention_heads(queue, Op::kName, attention_call(args)); },
      .traits = {.isa = "core", .reduction_order = "webgpu.heads"},
  });
  table.add<Op>({
      .name = "chunks_of_keys",
      .supports =
          [=](const Args& args, const Caps&) {
            return supports_attention_chunks(attention_call(args), capabilities);
          },
      .scratch_bytes =
          [](const Args& args) { return attention_chunks_scratch_bytes(attention_call(args)); },
      .run =
          [](Queue& queue, const Args& args, const Tensor& scratch) {
            record_attention_chunks(queue, Op::kName, attention_call(args), scratch);
          },
      .traits = {.isa = "core", .reduction_order = "webgpu.chunks64"},
  });
  if constexpr (std::is_same_v<Op, PagedAttention>) {
    table.add<Op>({
        .name = "tiles_beside_chunks",
        .supports =
            [=](const Args& args, const Caps&) {
              return supports_mixed_attention(attention_call(args), capabilities);
            },
        .scratch_bytes =
            [](const Args& args) { return attention_chunks_scratch_bytes(attention_call(args)); },
        .run =
            [](Queue& queue, const Args& args, const Tensor& scratch) {
              record_mixed_attention(queue, Op::kName, attention_call(args), scratch);
            },
        // No reduction order: a token alone has another one than the same token in a prompt.
        .traits = {.isa = "core"},
    });
  }
  table.add<Op>({
      .name = "tiles_of_queries",
      .supports =
          [=](const Args& args, const Caps&) {
            return supports_attention_tiles(attention_call(args), capabilities);
          },
      .run = [](Queue& queue, const Args& args,
                const Tensor&) { record_attention_tiles(queue, Op::kName, attention_call(args)); },
      .traits = {.isa = "core", .reduction_order = "webgpu.tiles"},
  });
}

}  // namespace tessera
