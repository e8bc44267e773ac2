#include "support/tiny_model.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <deque>

#include "base/error.hpp"
#include "formats/gguf_writer.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"

namespace tessera {
namespace {

/// splitmix64 (Steele, Lea and Flood 2014): the same numbers on every platform.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// Uniform in [low, high).
double uniform(uint64_t& state, double low, double high) {
  return low + (high - low) * static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

int integer(uint64_t& state, int low, int high) {
  return low + static_cast<int>(next_random(state) % static_cast<uint64_t>(high - low + 1));
}

/// A scale around `value`: blocks of one tensor should differ.
uint16_t scale_near(uint64_t& state, double value) {
  return f32_to_f16(static_cast<float>(value * uniform(state, 0.7, 1.3)));
}

template <size_t N>
void fill_random(uint64_t& state, uint8_t (&bytes)[N]) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(next_random(state));
}

// Quants are uniform, of n levels around centre c. Formats with a minimum get dmin = c * d and
// equal scale and minimum in each sub-block, so that the mean is 0; in the others the signs of the
// scales alternate at random. The deviation of n uniform levels is sqrt((n^2 - 1) / 12).

double level_deviation(int n_levels) {
  return std::sqrt((n_levels * n_levels - 1) / 12.0);
}

/// Packs eight 6-bit scales and minima as Q4_K and Q5_K do: the first four of each in the low six
/// bits of bytes 0-3 and 4-7, the last four as nibbles in bytes 8-11 and the spare high bits.
void pack_scales_6bit(const std::array<int, 8>& values, uint8_t (&packed)[12]) {
  for (size_t j = 0; j < 4; ++j) {
    const int high = values[j + 4] >> 4;
    packed[j] = static_cast<uint8_t>(values[j] | high << 6);
    packed[j + 4] = packed[j];
    packed[j + 8] = static_cast<uint8_t>((values[j + 4] & 15) | (values[j + 4] & 15) << 4);
  }
}

/// 6-bit scales of Q4_K and Q5_K; their root mean square is near 48.6.
constexpr double kScaleRms6Bit = 48.6;
std::array<int, 8> random_scales_6bit(uint64_t& state) {
  std::array<int, 8> scales;
  for (int& scale : scales) scale = integer(state, 32, 63);
  return scales;
}

void set_minimum(uint16_t& dmin, uint16_t d, double centre) {
  dmin = f32_to_f16(static_cast<float>(centre) * f16_to_f32(d));
}

void randomize(BlockQ5_1& block, double deviation, uint64_t& state) {
  fill_random(state, block.qs);
  fill_random(state, block.qh);
  block.d = scale_near(state, deviation / level_deviation(32));
  set_minimum(block.m, block.d, -15.5);
}

void randomize(BlockQ2_K& block, double deviation, uint64_t& state) {
  fill_random(state, block.qs);
  for (uint8_t& scale : block.scales) scale = static_cast<uint8_t>(integer(state, 8, 15) * 0x11);
  constexpr double kScaleRms = 11.7;
  block.d = scale_near(state, deviation / kScaleRms / level_deviation(4));
  set_minimum(block.dmin, block.d, 1.5);
}

void randomize(BlockQ3_K& block, double deviation, uint64_t& state) {
  fill_random(state, block.qs);
  fill_random(state, block.hmask);
  fill_random(state, block.scales);  // uniform in -32..31
  block.d = scale_near(state, deviation / level_deviation(64) / level_deviation(8));
}

void randomize(BlockQ4_K& block, double deviation, uint64_t& state) {
  fill_random(state, block.qs);
  pack_scales_6bit(random_scales_6bit(state), block.scales);
  block.d = scale_near(state, deviation / kScaleRms6Bit / level_deviation(16));
  set_minimum(block.dmin, block.d, 7.5);
}

void randomize(BlockQ5_K& block, double deviation, uint64_t& state) {
  fill_random(state, block.qs);
  fill_random(state, block.qh);
  pack_scales_6bit(random_scales_6bit(state), block.scales);
  block.d = scale_near(state, deviation / kScaleRms6Bit / level_deviation(32));
  set_minimum(block.dmin, block.d, 15.5);
}

void randomize(BlockQ6_K& block, double deviation, uint64_t& state) {
  fill_random(state, block.ql);
  fill_random(state, block.qh);
  for (int8_t& scale : block.scales) scale = static_cast<int8_t>(integer(state, -128, 127));
  block.d = scale_near(state, deviation / level_deviation(256) / level_deviation(64));
}

template <typename Block>
std::vector<std::byte> random_blocks(int64_t n_blocks, double deviation, uint64_t& state) {
  std::vector<std::byte> bytes(static_cast<size_t>(n_blocks) * sizeof(Block));
  for (size_t i = 0; i < static_cast<size_t>(n_blocks); ++i) {
    Block block;
    randomize(block, deviation, state);
    std::memcpy(bytes.data() + i * sizeof(Block), &block, sizeof(Block));
  }
  return bytes;
}

std::vector<float> random_floats(int64_t count, double mean, double deviation, uint64_t& state) {
  const double half_width = deviation * std::sqrt(3.0);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(mean + uniform(state, -half_width, half_width));
  }
  return values;
}

/// UTF-8 of the character that stands for `byte` in GPT-2's alphabet: printable Latin-1 stands for
/// itself, the other 68 bytes for U+0100, U+0101, ... in order.
std::array<std::string, 256> byte_alphabet() {
  std::array<std::string, 256> alphabet;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const unsigned code = printable ? byte : next++;
    if (code < 0x80) {
      alphabet[byte].push_back(static_cast<char>(code));
    } else {
      alphabet[byte].push_back(static_cast<char>(0xC0 | code >> 6));
      alphabet[byte].push_back(static_cast<char>(0x80 | (code & 63)));
    }
  }
  return alphabet;
}

/// Adds tensors to a writer and keeps their bytes until it has written them.
class WeightBuilder {
 public:
  WeightBuilder(GgufWriter& writer, DType dtype, uint64_t seed)
      : writer_(writer), dtype_(dtype), state_(seed) {}

  /// [n_out, n_in]; outputs are of order 1 when inputs are.
  void matrix(const std::string& name, int64_t n_out, int64_t n_in) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(n_in));
    if (row_bytes(dtype_, n_in) == std::nullopt) {
      fail(ErrorKind::kInvalidArgument, name, "rows of {} values, expected a multiple of {} for {}",
           n_in, info(dtype_).block_size, tessera::name(dtype_));
    }
    kept_.push_back(random_weights(dtype_, n_out * n_in, deviation, state_));
    writer_.add_tensor(name, dtype_, {n_out, n_in}, kept_.back());
  }

  void vector(const std::string& name, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    kept_.emplace_back(bytes.begin(), bytes.end());
    writer_.add_tensor(name, DType::kF32, {static_cast<int64_t>(values.size())}, kept_.back());
  }

  void norm(const std::string& name, int64_t size) {
    vector(name, random_floats(size, 1.0, 0.1, state_));
  }

  void bias(const std::string& name, int64_t size) {
    vector(name, random_floats(size, 0.0, 0.1, state_));
  }

 private:
  GgufWriter& writer_;
  DType dtype_;
  uint64_t state_;
  std::deque<std::vector<std::byte>> kept_;
};

void check(const TinyModelOptions& options) {
  const auto require = [](bool holds, std::string_view what) {
    if (!holds) fail(ErrorKind::kInvalidArgument, "tiny model", "expected {}", what);
  };
  require(options.arch == "llama" || options.arch == "qwen2", "arch llama or qwen2");
  require(options.d_model > 0 && options.n_layers > 0 && options.n_heads > 0 &&
              options.n_kv_heads > 0 && options.d_ff > 0 && options.context > 0,
          "sizes above 0");
  require(options.d_model % options.n_heads == 0 && options.n_heads % options.n_kv_heads == 0,
          "n_heads to divide d_model and n_kv_heads to divide n_heads");
  const int head_dim = options.d_model / options.n_heads;
  require(head_dim % 2 == 0, "an even head_dim");
  require(options.rope_factors.empty() ||
              options.rope_factors.size() == static_cast<size_t>(head_dim / 2),
          "head_dim / 2 rope factors");
  require(options.rope_scaling.empty() || options.rope_scaling_factor > 0.0,
          "a rope scaling factor above 0");
}

void add_config(GgufWriter& writer, const TinyModelOptions& options, size_t vocab_size) {
  const auto key = [&](std::string_view name) { return options.arch + "." + std::string(name); };
  const auto add_size = [&](std::string_view name, int value) {
    writer.add_u32(key(name), static_cast<uint32_t>(value));
  };
  writer.add_string("general.architecture", options.arch);
  writer.add_string("general.name", "tiny random " + options.arch);
  add_size("block_count", options.n_layers);
  add_size("context_length", options.context);
  add_size("embedding_length", options.d_model);
  add_size("feed_forward_length", options.d_ff);
  add_size("attention.head_count", options.n_heads);
  add_size("attention.head_count_kv", options.n_kv_heads);
  add_size("rope.dimension_count", options.d_model / options.n_heads);
  add_size("vocab_size", static_cast<int>(vocab_size));
  writer.add_f32(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  writer.add_f32(key("rope.freq_base"), static_cast<float>(options.rope_theta));
  if (options.sliding_window > 0) add_size("attention.sliding_window", options.sliding_window);
  if (!options.rope_scaling.empty()) {
    writer.add_string(key("rope.scaling.type"), options.rope_scaling);
    writer.add_f32(key("rope.scaling.factor"), static_cast<float>(options.rope_scaling_factor));
    add_size("rope.scaling.original_context_length",
             static_cast<int>(options.context / options.rope_scaling_factor));
  }
}

void add_tokenizer(GgufWriter& writer, const TinyModelOptions& options,
                   const TinyVocabulary& vocabulary) {
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", options.pretokenizer);
  writer.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.add_i32s("tokenizer.ggml.token_type", vocabulary.types);
  writer.add_strings("tokenizer.ggml.merges", vocabulary.merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", 1);
  writer.add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_u32("tokenizer.ggml.padding_token_id", 2);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
}

void add_weights(WeightBuilder& weights, const TinyModelOptions& options, int64_t vocab_size) {
  const int64_t d_model = options.d_model;
  const int64_t kv_width = d_model / options.n_heads * options.n_kv_heads;
  weights.matrix("token_embd.weight", vocab_size, d_model);
  for (int layer = 0; layer < options.n_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    weights.norm(prefix + "attn_norm.weight", d_model);
    weights.matrix(prefix + "attn_q.weight", d_model, d_model);
    weights.matrix(prefix + "attn_k.weight", kv_width, d_model);
    weights.matrix(prefix + "attn_v.weight", kv_width, d_model);
    if (options.arch == "qwen2") {
      weights.bias(prefix + "attn_q.bias", d_model);
      weights.bias(prefix + "attn_k.bias", kv_width);
      weights.bias(prefix + "attn_v.bias", kv_width);
    }
    weights.matrix(prefix + "attn_output.weight", d_model, d_model);
    weights.norm(prefix + "ffn_norm.weight", d_model);
    weights.matrix(prefix + "ffn_gate.weight", options.d_ff, d_model);
    weights.matrix(prefix + "ffn_up.weight", options.d_ff, d_model);
    weights.matrix(prefix + "ffn_down.weight", d_model, options.d_ff);
  }
  weights.norm("output_norm.weight", d_model);
  if (!options.tied) weights.matrix("output.weight", vocab_size, d_model);
  if (!options.rope_factors.empty()) weights.vector("rope_freqs.weight", options.rope_factors);
}

}  // namespace

std::vector<std::byte> random_weights(DType dtype, int64_t count, double deviation,
                                      uint64_t& state) {
  const int64_t n_blocks = count / info(dtype).block_size;
  switch (dtype) {
    case DType::kQ5_1:
      return random_blocks<BlockQ5_1>(n_blocks, deviation, state);
    case DType::kQ2_K:
      return random_blocks<BlockQ2_K>(n_blocks, deviation, state);
    case DType::kQ3_K:
      return random_blocks<BlockQ3_K>(n_blocks, deviation, state);
    case DType::kQ4_K:
      return random_blocks<BlockQ4_K>(n_blocks, deviation, state);
    case DType::kQ5_K:
      return random_blocks<BlockQ5_K>(n_blocks, deviation, state);
    case DType::kQ6_K:
      return random_blocks<BlockQ6_K>(n_blocks, deviation, state);
    default:
      break;
  }
  const std::vector<float> values = random_floats(count, 0.0, deviation, state);
  std::vector<std::byte> bytes(static_cast<size_t>(n_blocks) *
                               static_cast<size_t>(info(dtype).block_bytes));
  encode(dtype, values.data(), bytes.data(), count);
  return bytes;
}

TinyVocabulary tiny_vocabulary() {
  TinyVocabulary vocabulary;
  vocabulary.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  vocabulary.types.assign(3, 3);
  const auto add = [&](const std::string& token) {
    vocabulary.tokens.push_back(token);
    vocabulary.types.push_back(1);
  };
  for (const std::string& token : byte_alphabet()) add(token);
  const std::string space = "\xC4\xA0";  // U+0120
  const std::array<std::pair<std::string, std::string>, 16> merges = {{
      {space, "t"},
      {"h", "e"},
      {space, "a"},
      {"i", "n"},
      {"r", "e"},
      {"o", "n"},
      {space + "t", "he"},
      {"e", "r"},
      {space, "s"},
      {"a", "t"},
      {"n", "d"},
      {space + "a", "nd"},
      {"l", "l"},
      {"he", "ll"},
      {"hell", "o"},
      {space, "hello"},
  }};
  for (const auto& [left, right] : merges) {
    vocabulary.merges.push_back(left + " " + right);
    add(left + right);
  }
  return vocabulary;
}

void write_tiny_model(const std::filesystem::path& path, const TinyModelOptions& options) {
  check(options);
  TinyVocabulary vocabulary = tiny_vocabulary();
  while (static_cast<int>(vocabulary.tokens.size()) < options.vocab_size) {
    vocabulary.tokens.push_back("<filler " + std::to_string(vocabulary.tokens.size()) + ">");
    vocabulary.types.push_back(1);
  }
  GgufWriter writer;
  add_config(writer, options, vocabulary.tokens.size());
  add_tokenizer(writer, options, vocabulary);
  WeightBuilder weights(writer, options.dtype, options.seed);
  add_weights(weights, options, static_cast<int64_t>(vocabulary.tokens.size()));
  writer.write(path);
}

}  // namespace tessera
