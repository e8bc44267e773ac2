#include "models/llama_gguf.hpp"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "formats/text.hpp"
#include "models/llama.hpp"

// Names of keys and tensors: the public GGUF specification and gguf-py's tables for these
// architectures.

namespace tessera {
namespace {

// No published model comes near these; they keep products of sizes inside 64 bits.
constexpr int64_t kMaxLayers = 1 << 12;
constexpr int64_t kMaxWidth = 1 << 22;
constexpr int64_t kMaxHeads = 1 << 16;
constexpr int64_t kMaxContext = 1 << 30;

class LlamaLoader {
 public:
  LlamaLoader(const GgufFile& file, Device& device, Activations activations)
      : file_(file), device_(device), activations_(activations) {}

  std::unique_ptr<LanguageModel> load() {
    read_architecture();
    read_config();
    read_rope();
    validate(config_, file_.where());
    read_weights();
    refuse_unread_tensors();
    return std::make_unique<LlamaModel>(std::move(config_), std::move(weights_), activations_);
  }

 private:
  void read_architecture() {
    if (file_.optional_int("split.count", 0, 1 << 16).value_or(0) > 1) {
      fail(ErrorKind::kUnsupported, file_.where(),
           "one part of a split model (split.count); join the parts into one file first");
    }
    config_.architecture = file_.require_string("general.architecture");
    if (config_.architecture == "llama") {
      // Files of this architecture store q and k with their rows permuted, so that pairs adjoin.
      config_.rope_pairing = RopePairing::kInterleaved;
    } else if (config_.architecture == "qwen2") {
      config_.rope_pairing = RopePairing::kHalfSplit;
    } else {
      fail(ErrorKind::kUnsupported, file_.where(),
           "architecture {} is not supported; expected llama or qwen2",
           printable(config_.architecture));
    }
  }

  void read_config() {
    config_.n_layers = file_.require_int(key("block_count"), 1, kMaxLayers);
    config_.trained_context = file_.require_int(key("context_length"), 1, kMaxContext);
    config_.d_model = file_.require_int(key("embedding_length"), 1, kMaxWidth);
    config_.d_ff = file_.require_int(key("feed_forward_length"), 1, kMaxWidth);
    config_.n_heads = file_.require_int(key("attention.head_count"), 1, kMaxHeads);
    config_.n_kv_heads =
        file_.optional_int(key("attention.head_count_kv"), 1, kMaxHeads).value_or(config_.n_heads);
    config_.sliding_window =
        file_.optional_int(key("attention.sliding_window"), 0, kMaxContext).value_or(0);
    config_.norm_eps =
        static_cast<float>(file_.require_float(key("attention.layer_norm_rms_epsilon"), 1e-30, 1));
    if (const auto length = file_.optional_int(key("attention.key_length"), 1, kMaxWidth)) {
      config_.head_dim = *length;
    } else if (config_.d_model % config_.n_heads == 0) {
      config_.head_dim = config_.d_model / config_.n_heads;
    } else {
      fail(ErrorKind::kInvalidFile, file_.where(), "{} is {}, expected a divisor of {} = {}",
           key("attention.head_count"), config_.n_heads, key("embedding_length"), config_.d_model);
    }
    const auto value_length = file_.optional_int(key("attention.value_length"), 1, kMaxWidth);
    if (value_length && *value_length != config_.head_dim) {
      fail(ErrorKind::kUnsupported, file_.where(), "{} is {}, expected {}: that of the keys",
           key("attention.value_length"), *value_length, config_.head_dim);
    }
    // Sizes of tensors are products of at most three of these.
    if (config_.n_heads * config_.head_dim > kMaxWidth) {
      fail(ErrorKind::kInvalidFile, file_.where(), "{} heads of {} values, expected at most {}",
           config_.n_heads, config_.head_dim, kMaxWidth);
    }
  }

  void read_rope() {
    RopeSpec& rope = config_.rope;
    rope.rotary_dim = static_cast<int>(
        file_.optional_int(key("rope.dimension_count"), 2, kMaxWidth).value_or(config_.head_dim));
    rope.base = file_.optional_float(key("rope.freq_base"), 1, 1e15).value_or(10000);
    const double factor = file_.optional_float(key("rope.scaling.factor"), 1e-6, 1e6).value_or(1);
    const std::string_view type = file_.optional_string(key("rope.scaling.type")).value_or("none");
    if (type == "linear") {
      rope.scaling = {.kind = RopeScalingKind::kLinear, .factor = factor};
    } else if (type != "none") {
      fail(ErrorKind::kUnsupported, file_.where(),
           "{} is {}; expected none or linear (llama3's scaling comes as rope_freqs.weight)",
           key("rope.scaling.type"), printable(type));
    }
    if (file_.find_tensor("rope_freqs.weight") == nullptr) return;
    const GgufTensor& factors = claim("rope_freqs.weight", {rope.rotary_dim / 2});
    if (factors.dtype != DType::kF32) {
      fail(ErrorKind::kUnsupported, file_.where() + ": rope_freqs.weight", "expected F32, got {}",
           factors.ggml_type_name);
    }
    config_.rope_factors.resize(factors.bytes.size() / sizeof(float));
    std::memcpy(config_.rope_factors.data(), factors.bytes.data(), factors.bytes.size());
  }

  void read_weights() {
    const auto& [d_model, d_ff] = std::pair(config_.d_model, config_.d_ff);
    const int64_t q_width = config_.n_heads * config_.head_dim;
    const int64_t kv_width = config_.n_kv_heads * config_.head_dim;
    read_embedding();
    weights_.output_norm = vector("output_norm.weight", d_model);
    for (int64_t i = 0; i < config_.n_layers; ++i) {
      const std::string prefix = fmt::format("blk.{}.", i);
      LlamaLayer layer;
      layer.attention_norm = vector(prefix + "attn_norm.weight", d_model);
      layer.q = matrix(prefix + "attn_q.weight", q_width, d_model);
      layer.k = matrix(prefix + "attn_k.weight", kv_width, d_model);
      layer.v = matrix(prefix + "attn_v.weight", kv_width, d_model);
      layer.q_bias = bias(prefix + "attn_q.bias", q_width);
      layer.k_bias = bias(prefix + "attn_k.bias", kv_width);
      layer.v_bias = bias(prefix + "attn_v.bias", kv_width);
      layer.attention_output = matrix(prefix + "attn_output.weight", d_model, q_width);
      layer.mlp_norm = vector(prefix + "ffn_norm.weight", d_model);
      layer.gate = matrix(prefix + "ffn_gate.weight", d_ff, d_model);
      layer.up = matrix(prefix + "ffn_up.weight", d_ff, d_model);
      layer.down = matrix(prefix + "ffn_down.weight", d_model, d_ff);
      weights_.layers.push_back(layer);
    }
  }

  /// Files may pad the vocabulary with rows that are no token: those are cut off, so that they can
  /// never be sampled.
  void read_embedding() {
    const GgufTensor* found = file_.find_tensor("token_embd.weight");
    const int64_t n_rows = found && found->shape.rank() == 2 ? found->shape[0] : 1;
    const bool tied = file_.find_tensor("output.weight") == nullptr;
    const Tensor embedding =
        put("token_embd.weight", {n_rows, config_.d_model}, {.lookup = true, .product = tied});
    const Tensor head = tied ? embedding : matrix("output.weight", n_rows, config_.d_model);

    const GgufValue* tokens = file_.find("tokenizer.ggml.tokens");
    const GgufArray* array = tokens ? std::get_if<GgufArray>(&tokens->data) : nullptr;
    config_.vocab_size = array ? static_cast<int64_t>(array->size) : n_rows;
    if (config_.vocab_size < 1 || config_.vocab_size > n_rows) {
      fail(ErrorKind::kInvalidFile, file_.where(),
           "tokenizer.ggml.tokens has {} tokens, expected 1 to {}: the rows of token_embd.weight",
           config_.vocab_size, n_rows);
    }
    weights_.embedding = embedding.slice(0, config_.vocab_size);
    weights_.head = head.slice(0, config_.vocab_size);
  }

  Tensor matrix(const std::string& name, int64_t n_out, int64_t n_in) {
    return put(name, {n_out, n_in}, {.product = true});
  }

  /// Norms and biases are f32 in every published file; kernels count on it.
  Tensor vector(const std::string& name, int64_t size) {
    const Tensor tensor = put(name, {size}, {});
    if (tensor.dtype != DType::kF32) {
      fail(ErrorKind::kUnsupported, file_.where() + ": " + name, "expected F32, got {}",
           tessera::name(tensor.dtype));
    }
    return tensor;
  }

  /// Qwen2 always has them, some Llama models too.
  Tensor bias(const std::string& name, int64_t size) {
    const bool wanted = config_.architecture == "qwen2" || file_.find_tensor(name) != nullptr;
    return wanted ? vector(name, size) : Tensor{};
  }

  Tensor put(const std::string& name, const Shape& shape, WeightUses uses) {
    uses.quantised = uses.product && activations_ == Activations::kQ8;
    const GgufTensor& source = claim(name, shape);
    weights_.storage.push_back(prepare(device_, source.dtype, shape, source.bytes, uses));
    return weights_.storage.back().tensor;
  }

  const GgufTensor& claim(const std::string& name, const Shape& shape) {
    const GgufTensor& tensor = file_.require_tensor(name, shape);
    claimed_.insert(tensor.name);
    return tensor;
  }

  /// A tensor that no code here uses means a model that is not what it says: its output would be
  /// wrong without a word.
  void refuse_unread_tensors() const {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (claimed_.count(tensor.name) != 0) continue;
      fail(ErrorKind::kUnsupported, file_.where(),
           "tensor {} is not part of architecture {} as it is implemented here",
           printable(tensor.name), config_.architecture);
    }
  }

  std::string key(std::string_view name) const {
    return config_.architecture + "." + std::string(name);
  }

  const GgufFile& file_;
  Device& device_;
  Activations activations_;
  LlamaConfig config_;
  LlamaWeights weights_;
  std::set<std::string_view> claimed_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_gguf_model(const GgufFile& file, Device& device,
                                               Activations activations) {
  return LlamaLoader(file, device, activations).load();
}

}  // namespace tessera
