#include "ops/rope/rope_ref.hpp"

#include "ops/rope/rope.hpp"

namespace tessera {

ref::Values ref::rotated_head(const Tensor& heads, int64_t t, int64_t h, const Tensor& rotation,
                              RopePairing pairing) {
  Values head = read_row(heads, t * heads.dim(1) + h);
  const auto n_pairs = static_cast<size_t>(rotation.dim(1));
  for (size_t i = 0; i < n_pairs; ++i) {
    const Values turn = read_row(rotation, t * rotation.dim(1) + static_cast<int64_t>(i));
    const double cos = turn[0], sin = turn[1];
    const bool interleaved = pairing == RopePairing::kInterleaved;
    double& a = head[interleaved ? 2 * i : i];
    double& b = head[interleaved ? 2 * i + 1 : i + n_pairs];
    const double rotated_a = a * cos - b * sin;
    b = a * sin + b * cos;
    a = rotated_a;
  }
  return head;
}

void ref::check_rotation(std::string_view what, const Tensor& rotation, int64_t n_tokens,
                         int64_t head_dim) {
  ops::expect(what, rotation, {DType::kF32}, {n_tokens, -1, 2});
  ops::require(rotation.dim(1) <= head_dim / 2, what,
               "expected at most {} pairs (head_dim is {}), got {}; build the table with "
               "rotary_dim <= head_dim",
               head_dim / 2, head_dim, rotation.dim(1));
}

double ref::rope_flops(const Tensor& rotation, int64_t n_heads) {
  return 3 * static_cast<double>(n_heads) * static_cast<double>(rotation.shape.count());
}

void Rope::validate(const Args& args) {
  ops::expect("rope.q", args.q, {DType::kF32}, {-1, -1, -1});
  const int64_t n_tokens = args.q.dim(0), head_dim = args.q.dim(2);
  ops::expect_optional("rope.k", args.k, {DType::kF32}, {n_tokens, -1, head_dim});
  ref::check_rotation("rope.rotation", args.rotation, n_tokens, head_dim);
  ops::expect_optional("rope.live", args.live, {DType::kU32}, {1});
}

Cost Rope::cost(const Args& args) {
  const int64_t n_heads = args.q.dim(1) + (args.k.defined() ? args.k.dim(1) : 0);
  return {
      .flops = ref::rope_flops(args.rotation, n_heads),
      .bytes = 2 * (ops::bytes_of(args.q) + ops::bytes_of(args.k)) + ops::bytes_of(args.rotation)};
}

void Rope::reference(const Args& args) {
  for (const Tensor& heads : {args.q, args.k}) {
    if (!heads.defined()) continue;
    for (int64_t t = 0; t < ref::live_rows(args.live, heads.dim(0)); ++t) {
      for (int64_t h = 0; h < heads.dim(1); ++h) {
        ref::write_row(heads, t * heads.dim(1) + h,
                       ref::rotated_head(heads, t, h, args.rotation, args.pairing));
      }
    }
  }
}

}  // namespace tessera
