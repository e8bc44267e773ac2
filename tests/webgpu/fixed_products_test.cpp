// Products of the files with a fixed interface: attention, matmul, matmul_int4, linear, matvec.

#include "tensor/convert.hpp"

#include "fixed_kernels.hpp"

namespace tessera::webgpu {
namespace {

// ---- attention

struct AttentionShape {
  size_t n_queries, n_keys, n_heads, n_kv_heads, head_dim, position_offset;
};

FixedTest attention_case(const AttentionShape& shape) {
  const auto [n_queries, n_keys, n_heads, n_kv_heads, head_dim, position_offset] = shape;
  const Floats q = random_floats(n_queries * n_heads * head_dim, 9, 3);
  const Floats k = random_floats(n_keys * n_kv_heads * head_dim, 10, 3);
  const Floats v = random_floats(n_keys * n_kv_heads * head_dim, 11);
  Expected expected;
  const auto width = static_cast<double>(head_dim);
  std::vector<double> scores, sizes, out(head_dim), out_size(head_dim);
  for (size_t t = 0; t < n_queries; ++t) {
    for (size_t h = 0; h < n_heads; ++h) {
      const size_t kv = h / (n_heads / n_kv_heads);
      const float* query = &q[(t * n_heads + h) * head_dim];
      const size_t visible = std::min(n_keys, position_offset + t + 1);
      scores.assign(visible, 0);
      double largest = -1e300, sum = 0, score_error = 0;
      for (size_t j = 0; j < visible; ++j) {
        const float* key = &k[(j * n_kv_heads + kv) * head_dim];
        double size = 0;
        for (size_t d = 0; d < head_dim; ++d) {
          scores[j] += double{query[d]} * key[d];
          size += std::abs(double{query[d]} * key[d]);
        }
        scores[j] /= std::sqrt(width);
        score_error = std::max(score_error, (width / 4 + 8) * kUnit * size / std::sqrt(width));
        largest = std::max(largest, scores[j]);
      }
      out.assign(head_dim, 0);
      out_size.assign(head_dim, 0);
      double spread = 0;  // exp's units, weighted
      for (size_t j = 0; j < visible; ++j) {
        const double p = std::exp(scores[j] - largest);
        sum += p;
        spread += p * (largest - scores[j]);
        for (size_t d = 0; d < head_dim; ++d) {
          const double value = v[(j * n_kv_heads + kv) * head_dim + d];
          out[d] += p * value;
          out_size[d] += p * std::abs(value);
        }
      }
      // The relative error of a weight, twice (weights and their sum), and the additions.
      const double relative = 2 * (2 * score_error + 2 * kUnit * (3 + 2 * spread / sum + 8)) +
                              (static_cast<double>(visible) / 8 + 16) * kUnit;
      for (size_t d = 0; d < head_dim; ++d) {
        expected.add(out[d] / sum, relative * out_size[d] / sum + 2 * kUnit);
      }
    }
  }
  const auto word = [](size_t value) { return static_cast<uint32_t>(value); };
  return {.kernel = fixed_kernel("attention"),
          .uniform = {word(n_queries), word(n_keys), word(n_heads), word(n_kv_heads),
                      word(head_dim), word(position_offset)},
          .bindings = {bytes_of(q), bytes_of(k), bytes_of(v), unwritten(q.size())},
          .expected = {{3, std::move(expected)}}};
}

TEST_F(FixedKernels, AttentionOfOneQueryAGroup) {
  TESSERA_NEEDS_ADAPTER();
  for (const AttentionShape& shape : std::vector<AttentionShape>{
           {1, 1, 1, 1, 1, 0},
           {1, 1, 2, 1, 64, 0},
           {3, 3, 2, 2, 5, 0},
           {5, 5, 4, 2, 64, 0},
           {1, 100, 14, 2, 64, 99},
           {2, 300, 3, 1, 80, 298},
           {1, 129, 2, 2, 128, 128},
           {1, 257, 1, 1, 256, 256},
           {2, 128, 2, 1, 33, 126},
           {4, 50, 2, 1, 64, 20},   // keys beyond the last query's position
           {4, 10, 2, 1, 64, 100},  // positions beyond the last key
           {31, 31, 1, 1, 8, 0},
       }) {
    verify(attention_case(shape));
  }
  verify(attention_case({8, 8, 2, 1, 16, 0}), 3);
}

TEST_F(FixedKernels, AttentionOfThirtyTwoQueriesAGroup) {
  TESSERA_NEEDS_ADAPTER();
  for (const AttentionShape& shape : std::vector<AttentionShape>{
           {32, 32, 1, 1, 1, 0},
           {40, 40, 2, 1, 64, 0},
           {65, 65, 1, 1, 80, 0},
           {33, 97, 1, 1, 33, 64},
           {35, 58, 2, 2, 128, 23},
           {40, 40, 1, 1, 256, 0},
           {50, 20, 1, 1, 64, 3},  // positions beyond the last key
       }) {
    verify(attention_case(shape));
  }
  verify(attention_case({66, 66, 1, 1, 16, 0}), 10);
}

TEST_F(FixedKernelsSlow, Attention) {
  TESSERA_NEEDS_ADAPTER();
  verify(attention_case({150, 150, 6, 2, 64, 0}));
  verify(attention_case({1, 5000, 14, 2, 64, 4999}));
  verify(attention_case({100, 300, 4, 1, 128, 200}));
}

TEST_F(FixedKernelsSlow, AttentionBeyondTheGridLimit) {
  TESSERA_NEEDS_ADAPTER();
  if (adapters()[0].type == WGPUAdapterType_CPU) {
    GTEST_SKIP()
        << "a software driver takes many minutes; folded grids of attention are tested small";
  }
  verify(attention_case({65600, 3, 1, 1, 4, 0}));
}

// ---- products

/// y = X W in f64 with the bound of a sum of K terms in f32, whatever its order.
Expected product(const std::vector<double>& x, const std::vector<double>& w, size_t m, size_t n,
                 size_t k, const Floats& residual = {}, double extra_units = 0) {
  Expected expected;
  std::vector<double> sums(n), sizes(n);
  for (size_t row = 0; row < m; ++row) {
    sums.assign(n, 0);
    sizes.assign(n, 0);
    for (size_t j = 0; j < k; ++j) {
      const double a = x[row * k + j];
      const double* b = &w[j * n];
      for (size_t column = 0; column < n; ++column) {
        sums[column] += a * b[column];
        sizes[column] += std::abs(a * b[column]);
      }
    }
    for (size_t column = 0; column < n; ++column) {
      const double r = residual.empty() ? 0 : residual[row * n + column];
      const double units = static_cast<double>(k) + 4 + extra_units;
      expected.add(sums[column] + r, units * kUnit * (sizes[column] + std::abs(r)));
    }
  }
  return expected;
}

std::vector<double> widened(const Floats& values) {
  return {values.begin(), values.end()};
}

struct ProductShape {
  size_t m, n, k;
};

FixedTest matmul_case(const ProductShape& shape) {
  const auto [m, n, k] = shape;
  const Floats a = random_floats(m * k, 12), b = random_floats(k * n, 13);
  return {.kernel = fixed_kernel("matmul"),
          .uniform = {static_cast<uint32_t>(m), static_cast<uint32_t>(k), static_cast<uint32_t>(n)},
          .bindings = {bytes_of(a), bytes_of(b), unwritten(m * n)},
          .expected = {{2, product(widened(a), widened(b), m, n, k)}}};
}

const std::vector<ProductShape> kProductShapes = {
    // Few rows.
    {1, 1, 1},
    {1, 17, 63},
    {1, 100, 200},
    {2, 16, 64},
    {3, 33, 65},
    {4, 5, 300},
    // One output a thread.
    {5, 1, 1},
    {16, 16, 64},
    {17, 15, 65},
    {30, 47, 129},
    {5, 300, 7},
    // 64x64 blocks: 1, 2, 3 and 4 steps of K, edges on every side.
    {256, 256, 32},
    {200, 280, 64},
    {255, 257, 70},
    {193, 321, 128},
    {17, 1000, 1},
    {1000, 3, 33},
};

TEST_F(FixedKernels, Matmul) {
  TESSERA_NEEDS_ADAPTER();
  for (const ProductShape& shape : kProductShapes) verify(matmul_case(shape));
  verify(matmul_case({2, 100, 30}), 3);
  verify(matmul_case({20, 100, 30}), 3);
  verify(matmul_case({200, 257, 30}), 15);
}

TEST_F(FixedKernelsSlow, MatmulBeyondTheGridLimit) {
  TESSERA_NEEDS_ADAPTER();
  verify(matmul_case({65535 * 16 + 5, 1, 2}));
  verify(matmul_case({1, 65535 * 16 + 5, 2}));
  verify(matmul_case({7, 65535 * 16 + 5, 1}));
}

FixedTest int4_case(const ProductShape& shape, size_t group_size) {
  const auto [m, n, k] = shape;
  const size_t n_groups = (k * n + group_size - 1) / group_size;
  const Floats a = random_floats(m * k, 14), scales = random_floats(n_groups, 15, 0.1f);
  const Floats zeros = [&] {
    Floats values = random_floats(n_groups, 16, 4);
    for (float& value : values) value += 8;  // not whole: the format does not say that they are
    return values;
  }();
  Words words((k * n + 7) / 8);
  std::vector<double> b(k * n);
  uint32_t state = 99;
  for (size_t flat = 0; flat < k * n; ++flat) {
    state = state * 1664525u + 1013904223u;
    const uint32_t nibble = state >> 28;
    words[flat / 8] |= nibble << (4 * (flat % 8));
    const size_t group = flat / group_size;
    b[flat] = (double{static_cast<float>(nibble)} - zeros[group]) * scales[group];
  }
  Expected expected = product(widened(a), b, m, n, k, {}, 4);
  return {.kernel = fixed_kernel("matmul_int4"),
          .uniform = {static_cast<uint32_t>(m), static_cast<uint32_t>(k), static_cast<uint32_t>(n),
                      static_cast<uint32_t>(group_size)},
          .bindings = {bytes_of(a), bytes_of(words), bytes_of(scales), bytes_of(zeros),
                       unwritten(m * n)},
          .expected = {{4, std::move(expected)}}};
}

TEST_F(FixedKernels, MatmulInt4) {
  TESSERA_NEEDS_ADAPTER();
  for (const ProductShape& shape : kProductShapes) verify(int4_case(shape, 32));
  // Rows of words: few rows, N and groups divisible by 8.
  for (const size_t group_size : {8, 32, 128, 4096}) {
    verify(int4_case({1, 128, 96}, group_size));
    verify(int4_case({3, 72, 33}, group_size));
    verify(int4_case({4, 8, 100}, group_size));
  }
  // Groups that end within a word, within four columns, and across rows.
  for (const size_t group_size : {1, 3, 4, 20, 100}) {
    verify(int4_case({2, 64, 20}, group_size));
    verify(int4_case({20, 24, 70}, group_size));
    verify(int4_case({260, 260, 33}, group_size));
  }
  verify(int4_case({1, 640, 40}, 32), 7);
  verify(int4_case({200, 260, 40}, 32), 15);
}

// ---- the linear family

std::vector<double> swiglu(const Floats& gate, const Floats& up) {
  std::vector<double> hidden(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    hidden[i] = double{gate[i]} / (1 + std::exp(-double{gate[i]})) * up[i];
  }
  return hidden;
}

FixedTest linear_case(const FixedKernel& kernel, const ProductShape& shape) {
  const auto [m, n, k] = shape;
  const bool gated = kernel.name == "linear_residual_swiglu_a";
  const Floats x = random_floats(m * k, 17, 2), up = random_floats(m * k, 18, 2);
  const Floats residual = random_floats(m * n, 20);
  Floats w = random_floats(k * n, 19);
  FixedTest test{
      .kernel = kernel,
      .uniform = {static_cast<uint32_t>(m), static_cast<uint32_t>(n), static_cast<uint32_t>(k), 0},
      .bindings = {bytes_of(x)},
      .expected = {}};
  if (gated) test.bindings.push_back(bytes_of(up));
  if (kernel.needs_f16) {
    std::vector<uint16_t> bits;
    for (float& value : w) {
      bits.push_back(f32_to_f16(value));
      value = f16_to_f32(bits.back());
    }
    test.bindings.push_back(bytes_of(bits));
  } else {
    test.bindings.push_back(bytes_of(w));
  }
  const bool adds = kernel.name != "linear";
  if (adds) test.bindings.push_back(bytes_of(residual));
  test.bindings.push_back(unwritten(m * n));
  // silu of |x| <= 2: exp's 3 + 2 |x| units, of two roundings each, and a few operations.
  test.expected.emplace_back(test.bindings.size() - 1,
                             product(gated ? swiglu(x, up) : widened(x), widened(w), m, n, k,
                                     adds ? residual : Floats{}, gated ? 24 : 0));
  return test;
}

TEST_F(FixedKernels, Linear) {
  TESSERA_NEEDS_ADAPTER();
  for (const FixedKernel& kernel : fixed_kernels()) {
    if (!kernel.file.starts_with("ops/matmul/linear") || !available(kernel)) continue;
    for (const ProductShape& shape : std::vector<ProductShape>{
             {1, 4, 4},
             {64, 64, 16},  // 1, 2, 3 and 4 steps of K, whole
             {64, 64, 32},
             {64, 64, 48},
             {64, 64, 64},
             {65, 68, 20},  // and cut off
             {63, 60, 36},
             {3, 132, 100},
             {130, 8, 4},
             {100, 200, 300},
         }) {
      verify(linear_case(kernel, shape));
    }
    verify(linear_case(kernel, {200, 196, 20}), 3);
  }
}

TEST_F(FixedKernelsSlow, LinearOfATrainer) {
  TESSERA_NEEDS_ADAPTER();
  for (const FixedKernel& kernel : fixed_kernels()) {
    if (!kernel.file.starts_with("ops/matmul/linear") || !available(kernel)) continue;
    verify(linear_case(kernel, {512, 768, 768}));
  }
}

// ---- matvec

TEST_F(FixedKernels, SimdMatvec) {
  TESSERA_NEEDS_ADAPTER();
  for (const std::string_view name : {"simd_matvec", "simd_matvec_shared"}) {
    const FixedKernel& kernel = fixed_kernel(name);
    if (!available(kernel)) continue;
    const auto matvec_case = [&](size_t rows, size_t cols) {
      const Floats w = random_floats(rows * cols, 21), x = random_floats(cols, 22);
      return FixedTest{.kernel = kernel,
                       .uniform = {static_cast<uint32_t>(rows), static_cast<uint32_t>(cols)},
                       .bindings = {bytes_of(w), bytes_of(x), unwritten(rows)},
                       .expected = {{2, product(widened(w), widened(x), rows, 1, cols)}}};
    };
    for (const size_t rows : {1, 3, 4, 5, 70}) {
      for (const size_t cols : {1, 31, 32, 33, 127, 128, 129, 500, 1024}) {
        verify(matvec_case(rows, cols));
      }
    }
    verify(matvec_case(70, 40), 3);
    verify(matvec_case(4 * 65535 + 9, 3));
  }
}

}  // namespace
}  // namespace tessera::webgpu
