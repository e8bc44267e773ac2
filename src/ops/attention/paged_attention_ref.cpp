#include "ops/attention/attention_ref.hpp"
#include "ops/attention/paged_attention.hpp"

namespace tessera {

void PagedAttention::validate(const Args& args) {
  ops::expect("paged_attention.q", args.q, {DType::kF32}, {-1, -1, -1});
  const int64_t n_tokens = args.q.dim(0), n_heads = args.q.dim(1), head_dim = args.q.dim(2);
  ops::expect("paged_attention.y", args.y, {DType::kF32}, {n_tokens, n_heads, head_dim});
  ops::expect("paged_attention.k_pages", args.k_pages, {DType::kF32, DType::kF16},
              {-1, -1, -1, head_dim});
  const int64_t n_kv_heads = args.k_pages.dim(1);
  ref::check_pages("paged_attention", args, n_tokens, n_kv_heads, head_dim);
  ref::check_heads("paged_attention.k_pages", n_heads, n_kv_heads, head_dim);
  ref::check_visibility("paged_attention", args.soft_cap, args.window);
}

Cost PagedAttention::cost(const Args& args) {
  const double n_sequences = static_cast<double>(args.block_tables.dim(0));
  const double context =
      static_cast<double>(args.block_tables.dim(1)) * static_cast<double>(args.k_pages.dim(2));
  const double token_values =
      static_cast<double>(args.k_pages.dim(1)) * static_cast<double>(args.k_pages.dim(3));
  const double token_bytes =
      token_values * (info(args.k_pages.dtype).block_bytes + info(args.v_pages.dtype).block_bytes);
  return {.flops = 4 * static_cast<double>(args.q.shape.count()) * context,
          .bytes = ops::bytes_of(args.q) + ops::bytes_of(args.y) +
                   n_sequences * context * token_bytes + ops::bytes_of(args.block_tables) +
                   ops::bytes_of(args.positions) + ops::bytes_of(args.sequences)};
}

void PagedAttention::reference(const Args& args) {
  const int64_t n_heads = args.q.dim(1), n_kv_heads = args.k_pages.dim(1);
  const int64_t group = n_heads / n_kv_heads;
  for (int64_t t = 0; t < ref::live_rows(args.live, args.q.dim(0)); ++t) {
    const int64_t sequence = ref::read_index(args.sequences, t);
    const int64_t position = ref::read_index(args.positions, t);
    if (sequence < 0) continue;
    for (int64_t g = 0; g < n_kv_heads; ++g) {
      ref::Matrix keys, values;
      for (int64_t j = ref::first_visible(position, args.window); j <= position; ++j) {
        const int64_t row = ref::page_row(args.k_pages, args.block_tables, sequence, j, g);
        keys.push_back(ref::read_row(args.k_pages, row));
        values.push_back(ref::read_row(args.v_pages, row));
      }
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const ref::Values q = ref::read_row(args.q, t * n_heads + h);
        ref::write_row(args.y, t * n_heads + h,
                       ref::attend(q, keys, values, args.scale, args.soft_cap));
      }
    }
  }
}

}  // namespace tessera
