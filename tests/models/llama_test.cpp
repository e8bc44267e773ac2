#include "models/llama.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "engine/tiny_engine.hpp"
#include "formats/gguf_writer.hpp"
#include "tensor/convert.hpp"

namespace tessera {
namespace {

LlamaConfig valid_config() {
  LlamaConfig config;
  config.architecture = "llama";
  config.n_layers = 2;
  config.d_model = 64;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 16;
  config.rope.rotary_dim = 16;
  return config;
}

TEST(LlamaConfig, RefusesContradictions) {
  validate(valid_config(), "file");
  const auto expect_refused = [](const char* what, auto change) {
    LlamaConfig config = valid_config();
    change(config);
    EXPECT_THROW(validate(config, "file"), Error) << what;
  };
  expect_refused("kv heads", [](LlamaConfig& c) { c.n_kv_heads = 3; });
  expect_refused("more kv heads than heads", [](LlamaConfig& c) { c.n_kv_heads = 8; });
  expect_refused("odd heads", [](LlamaConfig& c) { c.head_dim = 15; });
  expect_refused("rotary beyond the head", [](LlamaConfig& c) { c.rope.rotary_dim = 18; });
  expect_refused("odd rotary", [](LlamaConfig& c) { c.rope.rotary_dim = 7; });
  expect_refused("count of factors", [](LlamaConfig& c) { c.rope_factors = {1, 2}; });
  expect_refused("factor 0", [](LlamaConfig& c) { c.rope_factors.assign(8, 0.0f); });
}

TEST(LlamaConfig, FrequenciesAreDividedByFactorsAndScaling) {
  LlamaConfig config = valid_config();
  config.rope.base = 10000;
  std::vector<double> plain = rotary_frequencies(config);
  ASSERT_EQ(plain.size(), 8u);
  EXPECT_DOUBLE_EQ(plain[0], 1.0);
  EXPECT_NEAR(plain[3], std::pow(10000.0, -6.0 / 16), 1e-12);
  config.rope_factors = {1, 1, 1, 2, 4, 8, 8, 8};
  EXPECT_NEAR(rotary_frequencies(config)[4], plain[4] / 4, 1e-15);
  config.rope_factors.clear();
  config.rope.scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
  EXPECT_NEAR(rotary_frequencies(config)[2], plain[2] / 4, 1e-15);
}

/// The model in plain f64 loops, written from the papers and independent of every op of ours:
/// logits behind each token.
class PlainLlama {
 public:
  explicit PlainLlama(const std::filesystem::path& path) : file_(GgufFile::open(path)) {}

  std::vector<std::vector<double>> logits(const std::vector<uint32_t>& ids) {
    const std::string arch(file_.require_string("general.architecture"));
    const auto size = [&](const char* key) {
      return static_cast<size_t>(file_.require_int(arch + "." + key, 1, 1 << 20));
    };
    const size_t d_model = size("embedding_length"), n_heads = size("attention.head_count");
    const size_t n_kv_heads = size("attention.head_count_kv"), n_layers = size("block_count");
    const size_t head_dim = d_model / n_heads;
    const double base = file_.require_float(arch + ".rope.freq_base", 1, 1e9);
    const bool half_split = arch == "qwen2";
    const auto window = static_cast<size_t>(
        file_.optional_int(arch + ".attention.sliding_window", 0, 1 << 20).value_or(0));
    const Matrix embedding = read("token_embd.weight");
    std::vector<Row> x;
    for (const uint32_t id : ids) x.push_back(embedding[id]);
    for (size_t layer = 0; layer < n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      std::vector<Row> q, k, v;
      for (size_t t = 0; t < x.size(); ++t) {
        const Row n = norm(x[t], prefix + "attn_norm.weight");
        q.push_back(linear(n, prefix + "attn_q"));
        k.push_back(linear(n, prefix + "attn_k"));
        v.push_back(linear(n, prefix + "attn_v"));
        rotate(q.back(), head_dim, t, base, half_split);
        rotate(k.back(), head_dim, t, base, half_split);
      }
      for (size_t t = 0; t < x.size(); ++t) {
        Row mixed;
        for (size_t h = 0; h < n_heads; ++h) {
          const size_t kv = h / (n_heads / n_kv_heads);
          Row p;
          double sum = 0;
          const size_t first = window > 0 && t + 1 > window ? t + 1 - window : 0;
          for (size_t j = first; j <= t; ++j) {
            double dot = 0;
            for (size_t i = 0; i < head_dim; ++i)
              dot += q[t][h * head_dim + i] * k[j][kv * head_dim + i];
            p.push_back(std::exp(dot / std::sqrt(static_cast<double>(head_dim))));
            sum += p.back();
          }
          for (size_t i = 0; i < head_dim; ++i) {
            double value = 0;
            for (size_t j = first; j <= t; ++j) {
              value += p[j - first] / sum * v[j][kv * head_dim + i];
            }
            mixed.push_back(value);
          }
        }
        add(x[t], linear(mixed, prefix + "attn_output"));
        const Row n = norm(x[t], prefix + "ffn_norm.weight");
        Row hidden = linear(n, prefix + "ffn_gate");
        const Row up = linear(n, prefix + "ffn_up");
        for (size_t i = 0; i < hidden.size(); ++i) hidden[i] *= up[i] / (1 + std::exp(-hidden[i]));
        add(x[t], linear(hidden, prefix + "ffn_down"));
      }
    }
    const char* head = file_.find_tensor("output.weight") ? "output" : "token_embd";
    std::vector<Row> result;
    for (const Row& row : x) result.push_back(linear(norm(row, "output_norm.weight"), head));
    return result;
  }

 private:
  using Row = std::vector<double>;
  using Matrix = std::vector<Row>;

  Matrix read(const std::string& name) const {
    const GgufTensor& tensor = *file_.find_tensor(name);
    std::vector<float> values(static_cast<size_t>(tensor.shape.count()));
    dequantize(tensor.dtype, tensor.bytes.data(), values.data(), tensor.shape.count());
    const auto width = static_cast<size_t>(tensor.shape[-1]);
    Matrix matrix;
    for (size_t at = 0; at < values.size(); at += width) {
      matrix.emplace_back(values.begin() + static_cast<long>(at),
                          values.begin() + static_cast<long>(at + width));
    }
    return matrix;
  }
  Row linear(const Row& x, const std::string& name) const {
    Row y;
    for (const Row& row : read(name + ".weight")) {
      y.push_back(0);
      for (size_t i = 0; i < x.size(); ++i) y.back() += row[i] * x[i];
    }
    if (file_.find_tensor(name + ".bias")) add(y, read(name + ".bias")[0]);
    return y;
  }
  Row norm(const Row& x, const std::string& name) const {
    const Row weight = read(name)[0];
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    Row y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * weight[i]);
    return y;
  }
  static void add(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static void rotate(Row& heads, size_t head_dim, size_t position, double base, bool half_split) {
    const size_t n = head_dim / 2;
    for (size_t begin = 0; begin < heads.size(); begin += head_dim) {
      for (size_t i = 0; i < n; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
        double& a = heads[begin + (half_split ? i : 2 * i)];
        double& b = heads[begin + (half_split ? i + n : 2 * i + 1)];
        const double a_old = a;
        a = a * std::cos(angle) - b * std::sin(angle);
        b = a_old * std::sin(angle) + b * std::cos(angle);
      }
    }
  }

  GgufFile file_;
};

void expect_plain_logits(const TinyModelOptions& tiny) {
  const std::vector<uint32_t> ids = tiny_ids(12, 5);
  TinyEngine engine({}, tiny);
  const std::vector<float> logits = engine.logits(ids, 5);
  const auto expected = PlainLlama(engine.path()).logits(ids);
  ASSERT_EQ(logits.size(), expected.size() * expected[0].size());
  for (size_t t = 0; t < ids.size(); ++t) {
    for (size_t i = 0; i < expected[t].size(); ++i) {
      ASSERT_NEAR(logits[t * expected[t].size() + i], expected[t][i], 2e-5)
          << "token " << t << ", logit " << i;
    }
  }
}

TEST(Llama, GivesTheLogitsOfPlainLoops) {
  expect_plain_logits({});
}

TEST(Llama, WithAHeadOfItsOwn) {
  TinyModelOptions tiny;
  tiny.tied = false;
  expect_plain_logits(tiny);
}

TEST(Llama, WithBlockFormats) {
  TinyModelOptions tiny;
  tiny.dtype = DType::kQ4_1;
  expect_plain_logits(tiny);
}

TEST(Llama, WithASlidingWindow) {
  TinyModelOptions tiny;
  tiny.sliding_window = 4;  // of 12 tokens
  expect_plain_logits(tiny);
}

TEST(Qwen2, GivesTheLogitsOfPlainLoopsWithBiasesAndHalfSplitPairs) {
  TinyModelOptions tiny;
  tiny.arch = "qwen2";
  expect_plain_logits(tiny);
}

TEST(Llama, RopeScalingAndFactorsChangeTheResult) {
  const std::vector<uint32_t> ids = tiny_ids(12, 5);
  TinyModelOptions tiny;
  TinyEngine plain({}, tiny);
  tiny.rope_scaling = "linear";
  TinyEngine scaled({}, tiny);
  tiny.rope_scaling = "";
  tiny.rope_factors.assign(8, 4.0f);
  TinyEngine factors({}, tiny);
  EXPECT_NE(plain.logits(ids, 64), scaled.logits(ids, 64));
  EXPECT_EQ(factors.logits(ids, 64), scaled.logits(ids, 64)) << "all frequencies divided by four";
  tiny.rope_factors.assign(8, 1.0f);
  TinyEngine ones({}, tiny);
  EXPECT_EQ(plain.logits(ids, 64), ones.logits(ids, 64));
}

/// A copy of a tiny model with changes.
class Rewritten {
 public:
  using Skip = std::function<bool(std::string_view)>;
  Rewritten(const TinyModelOptions& tiny, const Skip& skip,
            const std::function<void(GgufWriter&)>& add) {
    static int n_files = 0;
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("tessera-rewritten-{}-{}.gguf", ::getpid(), n_files++);
    const std::filesystem::path original = path_.string() + ".original";
    write_tiny_model(original, tiny);
    const GgufFile file = GgufFile::open(original);
    GgufWriter writer;
    for (const GgufEntry& entry : file.metadata()) {
      if (!skip(entry.key)) writer.add(entry.key, entry.value);
    }
    for (const GgufTensor& tensor : file.tensors()) {
      if (!skip(tensor.name))
        writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
    }
    add(writer);
    writer.write(path_);
    std::filesystem::remove(original);
  }
  ~Rewritten() { std::filesystem::remove(path_); }

  std::string error() const {
    const auto device = device_registry().find("cpu").kind->make(0, {.n_threads = 1, .isa = {}});
    const GgufFile file = GgufFile::open(path_);
    try {
      load_gguf_model(file, *device, Activations::kExact);
    } catch (const Error& error) {
      return error.what();
    }
    return "loaded";
  }

 private:
  std::filesystem::path path_;
};

TEST(LlamaLoader, NamesWhatIsMissingOrUnknown) {
  const auto nothing = [](GgufWriter&) {};
  TinyModelOptions qwen2;
  qwen2.arch = "qwen2";
  const auto without = [&](const TinyModelOptions& tiny, std::string_view name) {
    return Rewritten(
               tiny, [name](std::string_view key) { return key == name; }, nothing)
        .error();
  };
  EXPECT_NE(without({}, "blk.1.ffn_up.weight").find("blk.1.ffn_up.weight"), std::string::npos);
  EXPECT_NE(without(qwen2, "blk.0.attn_k.bias").find("blk.0.attn_k.bias"), std::string::npos);
  EXPECT_NE(without({}, "llama.block_count").find("llama.block_count"), std::string::npos);
  // Optional keys have defaults.
  EXPECT_EQ(without({}, "llama.rope.freq_base"), "loaded");
  EXPECT_EQ(without({}, "llama.rope.dimension_count"), "loaded");

  static const std::vector<std::byte> bytes(64 * 4);
  const std::string extra =
      Rewritten(
          {}, [](std::string_view) { return false; },
          [](GgufWriter& writer) {
            writer.add_tensor("blk.0.attn_q_norm.weight", DType::kF32, {64}, bytes);
          })
          .error();
  EXPECT_NE(extra.find("blk.0.attn_q_norm.weight"), std::string::npos) << extra;
  TinyModelOptions yarn;
  yarn.rope_scaling = "yarn";
  EXPECT_NE(without(yarn, "").find("yarn"), std::string::npos);
}

}  // namespace
}  // namespace tessera
