#include "bench/fixed_cases.hpp"

#include <fmt/format.h>

#include <bit>

namespace tessera::bench {
namespace {

using webgpu::fixed_kernel;

constexpr int64_t kF32Bytes = 4;

uint32_t word(int64_t value) {
  return static_cast<uint32_t>(value);
}

double traffic(std::initializer_list<int64_t> counts) {
  double total = 0;
  for (const int64_t count : counts) total += static_cast<double>(count * kF32Bytes);
  return total;
}

/// The nine kernels of a layer that memory binds, both entries of each.
void add_layer_cases(std::vector<FixedCase>& all, std::string_view entry, int64_t n) {
  const auto add = [&](std::string_view name, std::string shape, std::vector<uint32_t> uniform,
                       std::vector<int64_t> counts, double flops, double bytes) {
    all.push_back({.kernel = &fixed_kernel(name, entry),
                   .shape = std::move(shape),
                   .uniform = std::move(uniform),
                   .counts = std::move(counts),
                   .flops = flops,
                   .bytes = bytes,
                   .memory_bound = true});
  };
  const uint32_t eps = std::bit_cast<uint32_t>(1e-5f);
  for (const int64_t width : {896, 4096}) {
    const int64_t rows = n / width, used = rows * width;
    const std::string shape = fmt::format("{}x{}", rows, width);
    const auto values = static_cast<double>(used);
    // Twice as many rows in the table as are looked up.
    add("embedding", shape, {word(rows), word(width)}, {rows, 2 * used, used}, 0,
        traffic({used, used, rows}));
    add("rmsnorm", shape, {word(rows), word(width), eps, 0}, {used, width, used}, 4 * values,
        traffic({used, used, width}));
    add("layernorm", shape, {word(rows), word(width), eps, 0}, {used, width, width, used},
        7 * values, traffic({used, used, width, width}));
    add("softmax", shape, {word(rows), word(width)}, {used, used}, 4 * values,
        traffic({used, used}));
  }
  const auto values = static_cast<double>(n);
  for (const std::string_view name : {"silu", "gelu"}) {
    add(name, fmt::format("{}", n), {word(n)}, {n, n}, 5 * values, traffic({n, n}));
  }
  for (const std::string_view name : {"add", "mul"}) {
    add(name, fmt::format("{}", n), {word(n)}, {n, n, n}, values, traffic({n, n, n}));
  }
  constexpr int64_t kHeads = 14, kKvHeads = 2, kHeadDim = 64;
  const int64_t tokens = n / (kHeads * kHeadDim);
  const int64_t n_q = tokens * kHeads * kHeadDim, n_k = tokens * kKvHeads * kHeadDim;
  add("rope", fmt::format("{}x{}x{}@{}", tokens, kHeads, kHeadDim, kKvHeads),
      {word(tokens), word(kHeads), word(kKvHeads), word(kHeadDim), std::bit_cast<uint32_t>(1e6f),
       0},
      {n_q, n_k}, 3 * static_cast<double>(n_q + n_k), traffic({n_q, n_q, n_k, n_k}));
}

void add_products(std::vector<FixedCase>& all) {
  const auto flops = [](int64_t m, int64_t n, int64_t k) {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  for (const int64_t n : {2048, 4096}) {
    all.push_back({.kernel = &fixed_kernel("matmul"),
                   .shape = fmt::format("{0}x{0}x{0}", n),
                   .uniform = {word(n), word(n), word(n)},
                   .counts = {n * n, n * n, n * n},
                   .flops = flops(n, n, n),
                   .bytes = traffic({n * n, n * n, n * n})});
  }
  for (const int64_t m : {1, 512, 4096}) {
    constexpr int64_t kSize = 4096, kGroup = 32;
    constexpr int64_t kGroups = kSize * kSize / kGroup;
    const int64_t words = kSize * kSize / 8;
    all.push_back({.kernel = &fixed_kernel("matmul_int4"),
                   .shape = fmt::format("{0}x{1}x{1}", m, kSize),
                   .uniform = {word(m), word(kSize), word(kSize), word(kGroup)},
                   .counts = {m * kSize, words, kGroups, kGroups, m * kSize},
                   .flops = flops(m, kSize, kSize),
                   .bytes = traffic({m * kSize, words, kGroups, kGroups, m * kSize})});
  }
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{512, 768, 768},
                                {512, 3072, 768},
                                {512, 768, 3072},
                                {512, 16384, 768},
                                {4096, 4096, 4096}}) {
    for (const webgpu::FixedKernel& kernel : webgpu::fixed_kernels()) {
      if (!kernel.name.starts_with("linear")) continue;
      FixedCase c = {.kernel = &kernel,
                     .shape = fmt::format("{}x{}x{}", m, n, k),
                     .uniform = {word(m), word(n), word(k), 0},
                     .counts = {},
                     .flops = flops(m, n, k)};
      for (const webgpu::FixedBinding& binding : kernel.bindings) {
        const bool is_input = binding.name == "X" || binding.name == "GATE" || binding.name == "UP";
        c.counts.push_back(is_input ? m * k : binding.name == "W" ? n * k : m * n);
        c.bytes += static_cast<double>(c.counts.back()) *
                   (binding.type == webgpu::FixedType::kVec4F16 ? 2 : 4);
      }
      all.push_back(std::move(c));
    }
  }
  for (const std::string_view name : {"simd_matvec", "simd_matvec_shared"}) {
    for (const auto& [rows, columns] : {std::array<int64_t, 2>{4096, 4096}, {151936, 896}}) {
      all.push_back({.kernel = &fixed_kernel(name),
                     .shape = fmt::format("1x{}x{}", rows, columns),
                     .uniform = {word(rows), word(columns)},
                     .counts = {rows * columns, columns, rows},
                     .flops = flops(1, rows, columns),
                     .bytes = traffic({rows * columns, columns, rows}),
                     .memory_bound = true});
    }
  }
}

void add_attention(std::vector<FixedCase>& all) {
  constexpr int64_t kHeads = 16, kHeadDim = 64, kKeys = 4096;
  for (const auto& [queries, kv_heads] :
       {std::array<int64_t, 2>{kKeys, kHeads}, {kKeys, 4}, {1, 4}}) {
    const int64_t offset = kKeys - queries;
    const int64_t n_q = queries * kHeads * kHeadDim, n_k = kKeys * kv_heads * kHeadDim;
    // Query t sees offset + t + 1 keys: two products over half of the square, or one row of it.
    const double pairs = static_cast<double>(queries) *
                         (static_cast<double>(offset) + static_cast<double>(queries + 1) / 2);
    all.push_back(
        {.kernel = &fixed_kernel("attention"),
         .shape = fmt::format("{}x{}x{}@{}x{}", queries, kHeads, kHeadDim, kKeys, kv_heads),
         .uniform = {word(queries), word(kKeys), word(kHeads), word(kv_heads), word(kHeadDim),
                     word(offset)},
         .counts = {n_q, n_k, n_k, n_q},
         .flops = 4 * pairs * static_cast<double>(kHeads * kHeadDim),
         .bytes = traffic({n_q, n_k, n_k, n_q})});
  }
}

}  // namespace

std::vector<FixedCase> fixed_cases(int64_t n) {
  std::vector<FixedCase> all;
  for (const std::string_view entry : {"main", "main_vec4"}) add_layer_cases(all, entry, n);
  add_products(all);
  add_attention(all);
  return all;
}

}  // namespace tessera::bench
