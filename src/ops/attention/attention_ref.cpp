#include "ops/attention/attention_ref.hpp"

#include <cmath>

#include "ops/attention/attention.hpp"
#include "ops/softmax/softmax_ref.hpp"

namespace tessera {
namespace {

struct Range {
  int64_t begin, end;
};

/// The keys that query `t` sees.
Range visible_keys(const Attention::Args& args, int64_t t) {
  const int64_t position = args.position_offset + t;
  const int64_t n_keys = args.k.dim(0);
  const int64_t end = args.causal ? std::clamp<int64_t>(position + 1, 0, n_keys) : n_keys;
  return {std::min(ref::first_visible(position, args.window), end), end};
}

}  // namespace

ref::Values ref::attend(const Values& q, std::span<const Values> keys,
                        std::span<const Values> values, double scale, double soft_cap) {
  Values scores;
  for (const Values& key : keys) {
    double dot = 0;
    for (size_t i = 0; i < q.size(); ++i) dot += q[i] * key[i];
    const double score = scale * dot;
    scores.push_back(soft_cap > 0 ? soft_cap * std::tanh(score / soft_cap) : score);
  }
  const Values p = softmax_row(scores);
  Values y(q.size(), 0.0);
  for (size_t j = 0; j < keys.size(); ++j) {
    for (size_t i = 0; i < y.size(); ++i) y[i] += p[j] * values[j][i];
  }
  return y;
}

void ref::check_heads(std::string_view what, int64_t n_heads, int64_t n_kv_heads,
                      int64_t head_dim) {
  ops::require(n_kv_heads >= 1 && n_heads % n_kv_heads == 0, what,
               "expected a number of key heads that divides the {} query heads, got {}; check "
               "n_heads and n_kv_heads of the model",
               n_heads, n_kv_heads);
  ops::require(head_dim >= 1, what,
               "expected heads of at least one value, got none; check head_dim of the model");
}

void ref::check_visibility(std::string_view op, float soft_cap, int64_t window) {
  ops::require(soft_cap >= 0, fmt::format("{}.soft_cap", op),
               "expected a value >= 0, got {}; 0 means no cap", soft_cap);
  ops::require(window >= 0, fmt::format("{}.window", op),
               "expected tokens >= 0, got {}; 0 means no window", window);
}

void Attention::validate(const Args& args) {
  ops::expect("attention.q", args.q, {DType::kF32}, {-1, -1, -1});
  const int64_t n_tokens = args.q.dim(0), n_heads = args.q.dim(1), head_dim = args.q.dim(2);
  ops::expect("attention.y", args.y, {DType::kF32}, {n_tokens, n_heads, head_dim});
  ops::expect("attention.k", args.k, {DType::kF32, DType::kF16}, {-1, -1, head_dim});
  ops::expect("attention.v", args.v, {args.k.dtype}, {args.k.dim(0), args.k.dim(1), head_dim});
  ref::check_heads("attention.k", n_heads, args.k.dim(1), head_dim);
  ref::check_visibility("attention", args.soft_cap, args.window);
}

Cost Attention::cost(const Args& args) {
  double n_pairs = 0;
  for (int64_t t = 0; t < args.q.dim(0); ++t) {
    const Range keys = visible_keys(args, t);
    n_pairs += static_cast<double>(keys.end - keys.begin);
  }
  return {.flops = 4 * static_cast<double>(args.q.dim(1) * args.q.dim(2)) * n_pairs,
          .bytes = ops::bytes_of(args.q) + ops::bytes_of(args.k) + ops::bytes_of(args.v) +
                   ops::bytes_of(args.y)};
}

void Attention::reference(const Args& args) {
  const int64_t n_heads = args.q.dim(1), n_kv_heads = args.k.dim(1);
  for (int64_t g = 0; g < n_kv_heads; ++g) {
    ref::Matrix keys, values;
    for (int64_t j = 0; j < args.k.dim(0); ++j) {
      keys.push_back(ref::read_row(args.k, j * n_kv_heads + g));
      values.push_back(ref::read_row(args.v, j * n_kv_heads + g));
    }
    const int64_t group = n_heads / n_kv_heads;
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      for (int64_t t = 0; t < args.q.dim(0); ++t) {
        const Range seen = visible_keys(args, t);
        const auto begin = static_cast<size_t>(seen.begin);
        const auto count = static_cast<size_t>(seen.end - seen.begin);
        ref::write_row(
            args.y, t * n_heads + h,
            ref::attend(ref::read_row(args.q, t * n_heads + h),
                        std::span(keys).subspan(begin, count),
                        std::span(values).subspan(begin, count), args.scale, args.soft_cap));
      }
    }
  }
}

}  // namespace tessera
