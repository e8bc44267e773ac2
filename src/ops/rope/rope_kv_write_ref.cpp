#include "ops/attention/attention_ref.hpp"
#include "ops/rope/rope_kv_write.hpp"
#include "ops/rope/rope_ref.hpp"

namespace tessera {

void RopeKvWrite::validate(const Args& args) {
  ops::expect("rope_kv_write.q", args.q, {DType::kF32}, {-1, -1, -1});
  const int64_t n_tokens = args.q.dim(0), head_dim = args.q.dim(2);
  ops::expect("rope_kv_write.k", args.k, {DType::kF32}, {n_tokens, -1, head_dim});
  const int64_t n_kv_heads = args.k.dim(1);
  ops::expect("rope_kv_write.v", args.v, {DType::kF32}, {n_tokens, n_kv_heads, head_dim});
  ref::check_heads("rope_kv_write.k", args.q.dim(1), n_kv_heads, head_dim);
  ref::check_rotation("rope_kv_write.rotation", args.rotation, n_tokens, head_dim);
  ref::check_pages("rope_kv_write", args, n_tokens, n_kv_heads, head_dim);
}

Cost RopeKvWrite::cost(const Args& args) {
  const double n_stored = static_cast<double>(args.k.shape.count());  // of each of k and v
  const double page_value_bytes =
      info(args.k_pages.dtype).block_bytes + info(args.v_pages.dtype).block_bytes;
  return {.flops = ref::rope_flops(args.rotation, args.q.dim(1) + args.k.dim(1)),
          .bytes = 2 * ops::bytes_of(args.q) + ops::bytes_of(args.k) + ops::bytes_of(args.v) +
                   ops::bytes_of(args.rotation) + n_stored * page_value_bytes};
}

void RopeKvWrite::reference(const Args& args) {
  const int64_t n_heads = args.q.dim(1), n_kv_heads = args.k.dim(1);
  for (int64_t t = 0; t < ref::live_rows(args.live, args.q.dim(0)); ++t) {
    const int64_t sequence = ref::read_index(args.sequences, t);
    const int64_t position = ref::read_index(args.positions, t);
    if (sequence < 0) continue;
    for (int64_t h = 0; h < n_heads; ++h) {
      ref::write_row(args.q, t * n_heads + h,
                     ref::rotated_head(args.q, t, h, args.rotation, args.pairing));
    }
    for (int64_t g = 0; g < n_kv_heads; ++g) {
      const int64_t row = ref::page_row(args.k_pages, args.block_tables, sequence, position, g);
      ref::write_row(args.k_pages, row,
                     ref::rotated_head(args.k, t, g, args.rotation, args.pairing));
      ref::write_row(args.v_pages, row, ref::read_row(args.v, t * n_kv_heads + g));
    }
  }
}

}  // namespace tessera
