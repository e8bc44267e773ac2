// The files with a fixed interface against f64 loops, driven through nothing but their table.

#include "webgpu/fixed_kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "fixed_kernel_runner.hpp"
#include "support.hpp"
#include "tensor/convert.hpp"

namespace tessera::webgpu {
namespace {

using Floats = std::vector<float>;
using Words = std::vector<uint32_t>;

constexpr double kUnit = 0x1p-24;       // rounding of one f32 operation
constexpr double kSmallest = 0x1p-126;  // f32 below this may be flushed to zero

/// What a binding should hold, each value with the error that its kernel may make.
struct Expected {
  std::vector<double> values, tolerances;
  void add(double value, double tolerance) {
    values.push_back(value);
    tolerances.push_back(tolerance + kSmallest);
  }
};

struct Case {
  const FixedKernel& kernel;
  Words uniform;
  std::vector<Bytes> bindings;
  std::vector<std::pair<size_t, Expected>> expected;  // binding, contents
};

Floats random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
  uint32_t state = seed * 2654435761u + 1;
  Floats values(n);
  for (float& value : values) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    value = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * scale;
  }
  return values;
}

/// Storage of `n` values full of NaN: every output has to be written.
Bytes unwritten(size_t n) {
  return bytes_of(Words(n, 0x7fc00000u));
}

std::string words_text(const Words& words) {
  std::string text = "(";
  for (const uint32_t word : words) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", word);
  return text + ")";
}

/// The worst value of a binding, measured in its tolerance.
void compare(const std::string& what, const Bytes& bytes, const Expected& expected) {
  Floats got(bytes.size() / 4);
  std::memcpy(got.data(), bytes.data(), bytes.size());
  ASSERT_EQ(got.size(), expected.values.size()) << what;
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected.values[i]) / expected.tolerances[i];
    if (!(error <= worst)) {  // NaN counts as worst
      worst = error;
      at = i;
      if (std::isnan(error)) break;
    }
  }
  EXPECT_LE(worst, 1.0) << what << ": element " << at << " is " << got[at] << ", expected "
                        << expected.values[at] << " +- " << expected.tolerances[at];
}

class FixedKernels : public ::testing::Test {
 protected:
  static FixedKernelRunner& runner(bool runtime_checks) {
    std::optional<FixedKernelRunner>& made = runners_[runtime_checks ? 1 : 0];
    if (!made) made.emplace(ContextOptions{.runtime_checks = runtime_checks});
    return *made;
  }
  static void TearDownTestSuite() {
    for (auto& made : runners_) made.reset();
  }

  static bool available(const FixedKernel& kernel) {
    const Capabilities& capabilities = runner(false).context().capabilities();
    return (!kernel.needs_f16 || capabilities.f16) &&
           (!kernel.needs_subgroups || capabilities.subgroups);
  }

  /// Without run-time checks twice, with them once: right and the same bits. Also folded, into as
  /// many groups a dimension as `max_grid` says.
  static void verify(const Case& test, int64_t max_grid = 65535) {
    if (!available(test.kernel)) GTEST_SKIP() << "the adapter lacks what this entry needs";
    const Grid grid = fixed_grid(test.kernel, test.uniform, max_grid);
    const std::string what = fmt::format("{} {} grid {}x{}x{}", test.kernel.label(),
                                         words_text(test.uniform), grid.x, grid.y, grid.z);
    SCOPED_TRACE(what);
    const auto first = runner(false).run(test.kernel, test.uniform, test.bindings, grid);
    for (const auto& [binding, expected] : test.expected) {
      compare(what, first.at(binding), expected);
    }
    EXPECT_TRUE(runner(false).run(test.kernel, test.uniform, test.bindings, grid) == first)
        << "other bits the second time";
    const auto checked = runner(true).run(test.kernel, test.uniform, test.bindings, grid);
    for (const auto& [binding, expected] : test.expected) {
      compare(what + " with run-time checks", checked.at(binding), expected);
    }
  }

 private:
  static inline std::optional<FixedKernelRunner> runners_[2];
};

class FixedKernelsSlow : public FixedKernels {};

// ---- element-wise

Case elementwise_case(std::string_view name, std::string_view entry, size_t n) {
  const Floats a = random_floats(n, 1, 8), b = random_floats(n, 2, 8);
  const FixedKernel& kernel = fixed_kernel(name, entry);
  Case test{
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
    Case test{.kernel = fixed_kernel(name),
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

Case embedding_case(std::string_view entry, size_t n_tokens, size_t width, size_t vocab_size) {
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

Case norm_case(std::string_view name, std::string_view entry, size_t n_rows, size_t width,
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
  Case test{.kernel = fixed_kernel(name, entry),
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
    verify(norm_case(name, "main", 65600, 2));  // more rows than groups in a dimension
  }
  verify(norm_case("layernorm", "main", 3, 1000, 100.0f));
}

// ---- softmax

Case softmax_case(std::string_view entry, size_t n_rows, size_t width, float scale = 10,
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
  verify(softmax_case("main", 65600, 2));  // more rows than groups in a dimension
  verify(softmax_case("main", 3, 300, 1, 1e4f));
  verify(softmax_case("main", 3, 300, 3e38f));  // differences overflow
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

Case rope_case(std::string_view entry, const RopeShape& shape) {
  Case test{.kernel = fixed_kernel("rope", entry),
            .uniform = {static_cast<uint32_t>(shape.n_tokens), static_cast<uint32_t>(shape.n_heads),
                        static_cast<uint32_t>(shape.n_kv_heads),
                        static_cast<uint32_t>(shape.head_dim), std::bit_cast<uint32_t>(shape.base),
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

// ---- attention

struct AttentionShape {
  size_t n_queries, n_keys, n_heads, n_kv_heads, head_dim, position_offset;
};

Case attention_case(const AttentionShape& shape) {
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

Case matmul_case(const ProductShape& shape) {
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

Case int4_case(const ProductShape& shape, size_t group_size) {
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

Case linear_case(const FixedKernel& kernel, const ProductShape& shape) {
  const auto [m, n, k] = shape;
  const bool gated = kernel.name == "linear_residual_swiglu_a";
  const Floats x = random_floats(m * k, 17, 2), up = random_floats(m * k, 18, 2);
  const Floats residual = random_floats(m * n, 20);
  Floats w = random_floats(k * n, 19);
  Case test{
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
      return Case{.kernel = kernel,
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

// ---- the table itself

TEST_F(FixedKernels, CompileOnADeviceWithDefaultLimits) {
  TESSERA_NEEDS_ADAPTER();
  FixedKernelRunner core({.default_limits = true});
  for (const FixedKernel& kernel : fixed_kernels()) {
    if (kernel.needs_f16 || kernel.needs_subgroups) continue;
    EXPECT_NO_THROW(core.pipeline(kernel)) << kernel.label();
  }
}

TEST(FixedKernelTable, UniformsHaveTheSizesOfTheInterface) {
  const auto bytes = [](std::string_view name) { return fixed_kernel(name).uniform_bytes(); };
  EXPECT_EQ(bytes("embedding"), 8);
  EXPECT_EQ(bytes("matmul"), 12);
  EXPECT_EQ(bytes("matmul_int4"), 16);
  EXPECT_EQ(bytes("rmsnorm"), 16);
  EXPECT_EQ(bytes("layernorm"), 16);
  EXPECT_EQ(bytes("rope"), 24);
  EXPECT_EQ(bytes("attention"), 24);
  EXPECT_EQ(bytes("softmax"), 8);
  for (const std::string_view name : {"silu", "gelu", "add", "mul"}) EXPECT_EQ(bytes(name), 4);
  EXPECT_EQ(fixed_kernel("linear", "matmul").uniform_bytes(), 16);
}

void expect_grid(const Grid& grid, int64_t x, int64_t y, int64_t z) {
  EXPECT_EQ(grid.x, x);
  EXPECT_EQ(grid.y, y);
  EXPECT_EQ(grid.z, z);
}

TEST(FixedKernelTable, GridsOfTheInterface) {
  const auto grid = [](std::string_view name, const Words& uniform) {
    return fixed_grid(fixed_kernel(name), uniform);
  };
  expect_grid(grid("embedding", {50, 896}), 175, 1, 1);
  expect_grid(grid("embedding", {2048, 896}), 7168, 1, 1);
  expect_grid(grid("silu", {243200}), 950, 1, 1);
  expect_grid(grid("matmul", {50, 896, 896}), 56, 4, 1);
  expect_grid(grid("matmul", {1, 896, 151936}), 9496, 1, 1);
  expect_grid(grid("rope", {1, 14, 2, 64, 0, 0}), 2, 1, 1);
  expect_grid(grid("rope", {50, 14, 2, 64, 0, 0}), 88, 1, 1);
  expect_grid(grid("rmsnorm", {2048, 896, 0, 0}), 2048, 1, 1);
  expect_grid(grid("attention", {50, 50, 14, 2, 64, 0}), 50, 14, 1);
  expect_grid(fixed_grid(fixed_kernel("linear", "matmul"), Words{512, 768, 768, 0}), 12, 8, 1);
}

TEST(FixedKernelTable, FoldedGridsHoldEnoughAndHardlyMore) {
  for (const int64_t max_grid : {1000, 65535}) {
    for (const uint32_t n : {1u, 999u, 1000u, 1001u, 65535u, 65536u, 65537u, 131071u, 1000000u}) {
      const Grid grid = fixed_grid(fixed_kernel("softmax"), Words{n, 1}, max_grid);
      EXPECT_LE(grid.x, max_grid);
      EXPECT_LE(grid.y, max_grid);
      EXPECT_GE(grid.x * grid.y * grid.z, n);
      EXPECT_LE(grid.x * grid.y * grid.z, n + n / 100 + 1) << n;
    }
  }
  expect_grid(fixed_grid(fixed_kernel("attention"), Words{65536, 1, 3, 1, 1, 0}), 32768, 3, 2);
}

template <typename F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FixedKernelTable, RefusesWhatAnEntryDoesNotTake) {
  const auto refused = [](std::string_view name, std::string_view entry, const Words& uniform,
                          std::string_view because) {
    const std::string message = refusal([&] { fixed_grid(fixed_kernel(name, entry), uniform); });
    EXPECT_NE(message.find(because), std::string::npos) << message;
  };
  refused("linear", "matmul", {5, 6, 8, 0}, "divisible by 4, got 6");
  refused("linear", "matmul", {5, 8, 6, 0}, "divisible by 4, got 6");
  refused("add", "main_vec4", {7}, "divisible by 4, got 7");
  refused("rope", "main", {1, 1, 1, 7, 0, 0}, "even head_dim, got 7");
  refused("rope", "main_vec4", {1, 1, 1, 1024, 0, 0}, "got 1024");
  refused("attention", "main", {1, 1, 3, 2, 64, 0}, "got 3 and 2");
  refused("attention", "main", {1, 1, 2, 2, 257, 0}, "got 257");
  refused("matmul_int4", "main", {1, 1, 1, 0}, "group_size");
  refused("matmul", "main", {1, 1}, "expected 3 uniform words, got 2");
  refused("nothing", "main", {}, "expected a kernel of the table, got nothing");
  EXPECT_EQ(refusal([] {
              fixed_grid(fixed_kernel("linear", "matmul"), Words{5, 8, 4, 0});
            }),
            "accepted");
}

}  // namespace
}  // namespace tessera::webgpu
