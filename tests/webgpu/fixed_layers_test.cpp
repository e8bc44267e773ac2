// What memory binds of the files with a fixed interface: element-wise, embedding, norms, softmax,
// rope.

#include <bit>

#include "fixed_kernels.hpp"

namespace tessera::webgpu {
namespace {

// ---- element-wise

FixedTest elementwise_case(std::string_view name, std::string_view entry, size_t n) {
  const Floats a = random_floats(n, 1, 8), b = random_floats(n, 2, 8);
  const FixedKernel& kernel = fixed_kernel(name, entry);
  FixedTest test{
      .kernel = kernel, .uniform = {static_cast<uint32_t>(n)}, .bindings = {}, .expected = {}};
  test.bindings.push_back(bytes_of(a));
  if (kernel.bindings.size() == 3) test.bindings.push_back(bytes_of(b));
  test.bindings.push_back(unwritten(n));
  Expected expected;
  for (size_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    if (name == "add") expected.add(x + y, kUnit * std::abs(x + y));
    if (name == "mul") expected.add(x * y, kUnit * std::abs(x * y));
    // WGSL allows exp(x) 3 + 2 |x| units in the last place, of 2 kUnit each.
    if (name == "silu") {
      const double value = x / (1 + std::exp(-x));
      expected.add(value, 2 * kUnit * (10 + 2 * std::abs(x)) * std::abs(value));
    }
    if (name == "gelu") {
      const double u2 = 2 * 0.7978845608 * (x + 0.044715 * x * x * x);
      const double value = x / (1 + std::exp(-u2));
      expected.add(value, 2 * kUnit * (10 + 8 * std::abs(u2)) * std::abs(value));
    }
  }
  test.expected.emplace_back(test.bindings.size() - 1, std::move(expected));
  return test;
}

TEST_F(FixedKernels, ElementWise) {
  TESSERA_NEEDS_ADAPTER();
  for (const std::string_view name : {"add", "mul", "silu", "gelu"}) {
    for (const size_t n : {1, 3, 255, 256, 257, 5000}) {
      verify(elementwise_case(name, "main", n));
    }
    for (const size_t n : {4, 1020, 1024, 1028, 5000}) {
      verify(elementwise_case(name, "main_vec4", n));
    }
    verify(elementwise_case(name, "main", 5000), 3);
    verify(elementwise_case(name, "main_vec4", 20000), 3);
  }
}

TEST_F(FixedKernels, ActivationsOfLargeArguments) {
  TESSERA_NEEDS_ADAPTER();
  const Floats x = {-3e38f, -1e20f, -1e4f, -104, -88.8f, -20,  0,
                    20,     88.8f,  104,   1e4f, 1e20f,  3e38f};
  for (const std::string_view name : {"silu", "gelu"}) {
    FixedTest test{.kernel = fixed_kernel(name),
                   .uniform = {static_cast<uint32_t>(x.size())},
                   .bindings = {bytes_of(x), unwritten(x.size())},
                   .expected = {}};
    Expected expected;
    for (const float value : x) {
      expected.add(value > 0 ? value : 0, value > 0 ? 1e-6 * value : 1e-6);
    }
    test.expected.emplace_back(1, std::move(expected));
    // silu(-20) is -4e-8, everything else negative is closer to 0.
    verify(test);
  }
}

TEST_F(FixedKernelsSlow, ElementWiseBeyondTheGridLimit) {
  TESSERA_NEEDS_ADAPTER();
  verify(elementwise_case("add", "main", 65535u * 256u + 300u));
  verify(elementwise_case("gelu", "main", 65535u * 256u + 300u));
}

// ---- embedding

FixedTest embedding_case(std::string_view entry, size_t n_tokens, size_t width, size_t vocab_size) {
  const Floats weight = random_floats(vocab_size * width, 3);
  Words ids(n_tokens);
  for (size_t t = 0; t < n_tokens; ++t) ids[t] = static_cast<uint32_t>((t * 7 + 3) % vocab_size);
  if (n_tokens > 2) {
    ids[1] = static_cast<uint32_t>(vocab_size);  // beyond the table: zeros
    ids[2] = 0xffffffffu;
  }
  Expected expected;
  for (const uint32_t id : ids) {
    for (size_t d = 0; d < width; ++d) {
      expected.add(id < vocab_size ? weight[id * width + d] : 0.0, 0);
    }
  }
  return {.kernel = fixed_kernel("embedding", entry),
          .uniform = {static_cast<uint32_t>(n_tokens), static_cast<uint32_t>(width)},
          .bindings = {bytes_of(ids), bytes_of(weight), unwritten(n_tokens * width)},
          .expected = {{2, std::move(expected)}}};
}

TEST_F(FixedKernels, Embedding) {
  TESSERA_NEEDS_ADAPTER();
  verify(embedding_case("main", 1, 1, 1));
  verify(embedding_case("main", 5, 33, 11));
  verify(embedding_case("main", 7, 896, 50));
  verify(embedding_case("main", 50, 100, 20), 4);
  verify(embedding_case("main_vec4", 1, 4, 3));
  verify(embedding_case("main_vec4", 7, 896, 50));
  verify(embedding_case("main_vec4", 50, 100, 20), 2);
}

TEST_F(FixedKernelsSlow, EmbeddingBeyondTheGridLimit) {
  TESSERA_NEEDS_ADAPTER();
  verify(embedding_case("main", 65535u * 256u + 300u, 1, 10));
}

// ---- norms

FixedTest norm_case(std::string_view name, std::string_view entry, size_t n_rows, size_t width,
                    float shift = 0) {
  const bool layer = name == "layernorm";
  Floats x = random_floats(n_rows * width, 4, 2);
  for (float& value : x) value += shift;
  const Floats w = random_floats(width, 5), b = random_floats(width, 6);
  const float eps = 1e-5f;
  Expected expected;
  for (size_t t = 0; t < n_rows; ++t) {
    const float* row = &x[t * width];
    double mean = 0, squares = 0, largest = 0;
    for (size_t d = 0; layer && d < width; ++d) mean += row[d];
    mean /= static_cast<double>(width);
    for (size_t d = 0; d < width; ++d) {
      squares += (row[d] - mean) * (row[d] - mean);
      largest = std::max(largest, std::abs(static_cast<double>(row[d])));
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + double{eps});
    // A thread adds up to width / 16 values, then a tree of 256; differences from the mean have the
    // mean's error; a row whose variance is all eps magnifies neither.
    const double chain = static_cast<double>(width) / 16 + 16;
    for (size_t d = 0; d < width; ++d) {
      const double y = (row[d] - mean) * scale * w[d];
      const double mean_error = layer ? chain * kUnit * largest * scale * std::abs(w[d]) : 0;
      const double value = y + (layer ? b[d] : 0.0);
      expected.add(value,
                   2 * chain * kUnit * std::abs(y) + 2 * mean_error + 2 * kUnit * std::abs(value));
    }
  }
  FixedTest test{.kernel = fixed_kernel(name, entry),
                 .uniform = {static_cast<uint32_t>(n_rows), static_cast<uint32_t>(width),
                             std::bit_cast<uint32_t>(eps), 0},
                 .bindings = {bytes_of(x), bytes_of(w)},
                 .expected = {}};
  if (layer) test.bindings.push_back(bytes_of(b));
  test.bindings.push_back(unwritten(n_rows * width));
  test.expected.emplace_back(test.bindings.size() - 1, std::move(expected));
  return test;
}

TEST_F(FixedKernels, Norms) {
  TESSERA_NEEDS_ADAPTER();
  for (const std::string_view name : {"rmsnorm", "layernorm"}) {
    for (const size_t width :
         {1, 2, 16, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 896, 1500, 4096, 4100}) {
      verify(norm_case(name, "main", 5, width));
    }
    for (const size_t width : {4, 60, 64, 128, 132, 256, 260, 896, 1028, 4096, 4100}) {
      verify(norm_case(name, "main_vec4", 9, width));
    }
    verify(norm_case(name, "main", 37, 20), 4);
    verify(norm_case(name, "main", 21, 100), 4);
    verify(norm_case(name, "main", 13, 300), 4);
    verify(norm_case(name, "main_vec4", 53, 200), 3);
  }
  verify(norm_case("layernorm", "main", 3, 1000, 100.0f));
}

// ---- softmax

FixedTest softmax_case(std::string_view entry, size_t n_rows, size_t width, float scale = 10,
                       float shift = 0) {
  Floats x = random_floats(n_rows * width, 7, scale);
  for (float& value : x) value += shift;
  Expected expected;
  for (size_t r = 0; r < n_rows; ++r) {
    const float* row = &x[r * width];
    double largest = row[0], sum = 0;
    for (size_t c = 0; c < width; ++c) largest = std::max<double>(largest, row[c]);
    for (size_t c = 0; c < width; ++c) sum += std::exp(row[c] - largest);
    for (size_t c = 0; c < width; ++c) {
      const double value = std::exp(row[c] - largest) / sum;
      // exp's 3 + 2 |x| units, in the value and (weighted, so hardly more) in the sum.
      const double units = 2 * (3 + 2 * (largest - row[c])) + static_cast<double>(width) / 16 + 60;
      expected.add(value, 2 * kUnit * units * value + kSmallest);
    }
  }
  return {.kernel = fixed_kernel("softmax", entry),
          .uniform = {static_cast<uint32_t>(n_rows), static_cast<uint32_t>(width)},
          .bindings = {bytes_of(x), unwritten(n_rows * width)},
          .expected = {{1, std::move(expected)}}};
}

TEST_F(FixedKernels, Softmax) {
  TESSERA_NEEDS_ADAPTER();
  for (const size_t width :
       {1, 2, 16, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 1500, 4096, 4100}) {
    verify(softmax_case("main", 5, width));
  }
  for (const size_t width : {4, 60, 64, 128, 132, 256, 260, 1028, 4096, 4100}) {
    verify(softmax_case("main_vec4", 9, width));
  }
  verify(softmax_case("main", 37, 20), 4);
  verify(softmax_case("main", 13, 300), 4);
  verify(softmax_case("main_vec4", 53, 200), 3);
  verify(softmax_case("main", 3, 300, 1, 1e4f));
  verify(softmax_case("main", 3, 300, 3e38f));  // differences overflow
}

TEST_F(FixedKernelsSlow, MoreRowsThanGroupsInADimension) {
  TESSERA_NEEDS_ADAPTER();
  verify(norm_case("rmsnorm", "main", 65600, 2));
  verify(norm_case("layernorm", "main", 65600, 2));
  verify(softmax_case("main", 65600, 2));
}

TEST_F(FixedKernels, SoftmaxOfNothingIsZero) {
  TESSERA_NEEDS_ADAPTER();
  const std::vector<float> x(40, -std::numeric_limits<float>::infinity());
  Expected expected;
  for (size_t i = 0; i < x.size(); ++i) expected.add(0, 0);
  verify({.kernel = fixed_kernel("softmax"),
          .uniform = {2, 20},
          .bindings = {bytes_of(x), unwritten(x.size())},
          .expected = {{1, std::move(expected)}}});
}

// ---- rope

struct RopeShape {
  size_t n_tokens, n_heads, n_kv_heads, head_dim, position_offset;
  float base = 10000;
};

FixedTest rope_case(std::string_view entry, const RopeShape& shape) {
  FixedTest test{
      .kernel = fixed_kernel("rope", entry),
      .uniform = {static_cast<uint32_t>(shape.n_tokens), static_cast<uint32_t>(shape.n_heads),
                  static_cast<uint32_t>(shape.n_kv_heads), static_cast<uint32_t>(shape.head_dim),
                  std::bit_cast<uint32_t>(shape.base),
                  static_cast<uint32_t>(shape.position_offset)},
      .bindings = {},
      .expected = {}};
  for (const size_t n_heads : {shape.n_heads, shape.n_kv_heads}) {
    const Floats x = random_floats(shape.n_tokens * n_heads * shape.head_dim, 8);
    Expected expected;
    for (size_t t = 0; t < shape.n_tokens; ++t) {
      const auto position = static_cast<double>(shape.position_offset + t);
      for (size_t h = 0; h < n_heads; ++h) {
        for (size_t i = 0; i < shape.head_dim / 2; ++i) {
          const double angle =
              position * std::pow(double{shape.base}, -2.0 * static_cast<double>(i) /
                                                          static_cast<double>(shape.head_dim));
          const size_t at = (t * n_heads + h) * shape.head_dim + 2 * i;
          const double x0 = x[at], x1 = x[at + 1];
          // A frequency is right to 2^-32 turns and 2^-29 of itself.
          const double angle_error = position * 6.3 * 0x1p-32 + angle * 0x1p-29 + 6 * kUnit;
          const double size = std::hypot(x0, x1);
          expected.add(x0 * std::cos(angle) - x1 * std::sin(angle), size * angle_error);
          expected.add(x0 * std::sin(angle) + x1 * std::cos(angle), size * angle_error);
        }
      }
    }
    test.expected.emplace_back(test.bindings.size(), std::move(expected));
    test.bindings.push_back(bytes_of(x));
  }
  return test;
}

TEST_F(FixedKernels, Rope) {
  TESSERA_NEEDS_ADAPTER();
  for (const RopeShape& shape : std::vector<RopeShape>{
           {1, 1, 1, 2, 0},
           {3, 1, 1, 2, 5},
           {5, 14, 2, 64, 0},
           {5, 2, 6, 80, 1000},
           {3, 3, 1, 128, 100000, 500000},
           {2, 2, 1, 256, 4000, 1e6f},
           {3, 1, 1, 6, 77, 1},
           {3, 1, 1, 34, 3000000, 1.5f},
           {2, 1, 1, 1024, 9},
       }) {
    verify(rope_case("main", shape));
    if (shape.head_dim % 4 == 0 && shape.head_dim <= 512) verify(rope_case("main_vec4", shape));
  }
  verify(rope_case("main", {20, 3, 2, 64, 7}), 2);
  verify(rope_case("main_vec4", {50, 3, 2, 64, 7}), 2);
  // Bases over the whole range, mantissas near 1 and near 2.
  for (const float base : {1.0000001f, 1.9999999f, 2.0f, 3.9999998f, 1e30f, 3e38f}) {
    verify(rope_case("main", {2, 1, 1, 64, 100, base}));
  }
}

}  // namespace
}  // namespace tessera::webgpu
