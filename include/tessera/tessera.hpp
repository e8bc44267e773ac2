#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/error.hpp"

namespace tessera {
inline namespace v1 {

/// How activations enter products with quantised weights.
enum class ActivationMode {
  kAuto,  ///< may quantise to 8 bits for speed
  kF32,   ///< exact: what published logits are compared with
  kQ8,    ///< 8 bits wherever the weight's format allows
};

enum class KvType { kF16, kF32 };

struct LoadOptions {
  std::string device = "cpu";   ///< "cpu", "webgpu:1": see devices()
  int n_threads = 0;            ///< CPU threads; 0: as many as the process may use
  std::string isa = {};         ///< highest CPU tier: "portable", "avx2", ...; empty: the best
  int64_t context = 0;          ///< tokens that a session can hold; 0: the model's, at most 4096
  int max_sessions = 1;         ///< sessions with tokens at the same time
  int64_t prefill_chunk = 512;  ///< most tokens of one step
  ActivationMode activations = ActivationMode::kAuto;
  KvType kv_type = KvType::kF16;
  std::string pretokenizer = {};  ///< overrides the file's label; empty: the file's
  /// Equal bits whatever else is in a batch, whatever prefix was cached and however many threads
  /// there are; costs some speed for many tokens. CPU only.
  bool deterministic = false;
  bool allow_reference = false;  ///< run ops without a kernel on the slow reference
  std::vector<std::pair<std::string, std::string>> force = {};  ///< op, row
  std::filesystem::path trace_tensors =
      {};  ///< writes hash and summary of every tensor of every step
};

struct ModelInfo {
  std::string name, architecture, device, device_name;
  int64_t n_params = 0, file_bytes = 0, weight_bytes = 0, kv_bytes = 0, arena_bytes = 0;
  int64_t n_layers = 0, d_model = 0, d_ff = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int64_t vocab_size = 0, trained_context = 0, context = 0;
  int n_threads = 0;
  std::string weight_type, activations, kv_type;
};

struct TokenizeOptions {
  std::optional<bool> add_bos = {};  ///< empty: as the file says; never a second BOS
  bool parse_special = false;        ///< text such as <|im_end|> becomes its token
};

/// Called when a session has no room for another token.
enum class WhenFull {
  kStop,   ///< finish with FinishReason::kContext
  kError,  ///< throw Error{kOutOfMemory}
};

struct GenerateOptions {
  int64_t max_tokens = 128;
  /// Order of the samplers: top-k, softmax at `temperature`, min-p, top-p, then one draw.
  /// Off-values: temperature 0 is pure argmax (everything else is skipped), top_k 0, top_p 1,
  /// min_p 0.
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  std::optional<uint64_t> seed = {};   ///< empty: a new one, reported in the result
  std::vector<std::string> stop = {};  ///< generation ends before the first of these; never shown
  bool ignore_eos = false;
  WhenFull when_full = WhenFull::kStop;
  const std::atomic<bool>* cancel = nullptr;  ///< set to true by another thread or a signal handler
};

enum class FinishReason { kEnd, kStop, kLength, kContext, kCancelled };
std::string_view name(FinishReason reason);  ///< "end", "stop", "length", "context", "cancelled"

struct Timings {
  int64_t prefill_tokens = 0;  ///< of the prompt, without the reused prefix
  int64_t reused_tokens = 0;   ///< of the prompt, found in the session's cache
  int64_t decode_tokens = 0;   ///< steps behind the prompt's: the first token comes from the prompt
  double prefill_ms = 0, decode_ms = 0;
};

struct Generation {
  std::vector<uint32_t> prompt_ids, ids;  ///< `ids` without the token that ended it
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  uint64_t seed = 0;
  Timings timings;
};

/// Receives complete UTF-8 characters as they are generated; return false to stop.
using TextCallback = std::function<bool(std::string_view text)>;

/// A loaded model on its device. Cheap to copy: copies share everything. Thread-safe.
class Model {
 public:
  static Model load(const std::filesystem::path& file, const LoadOptions& options = {});

  const ModelInfo& info() const;
  std::vector<uint32_t> tokenize(std::string_view text, const TokenizeOptions& options = {}) const;
  /// The text of the ids; special tokens appear as their text, invalid UTF-8 as U+FFFD.
  std::string detokenize(std::span<const uint32_t> ids) const;
  /// The bytes of one token.
  std::string piece(uint32_t id) const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// One conversation: tokens and their cache. A prompt that starts like the session's tokens reuses
/// exactly that prefix. Sessions of one model may run on several threads; their steps take turns.
class Session {
 public:
  explicit Session(const Model& model);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Continues `prompt` (special-token text is parsed, BOS as the file says). Throws
  /// Error{kInvalidArgument} when the prompt is empty or longer than the context, with both
  /// numbers.
  Generation generate(std::string_view prompt, const GenerateOptions& options = {},
                      const TextCallback& on_text = {});
  Generation generate(std::span<const uint32_t> prompt_ids, const GenerateOptions& options = {},
                      const TextCallback& on_text = {});

  /// Logits f32 [n, vocab_size] behind each of the ids (all_positions) or behind the last one.
  std::vector<float> logits(std::span<const uint32_t> ids, bool all_positions = false);

  /// Natural-log likelihood of ids[i] given ids[0..i-1], for i = 1..n-1.
  std::vector<float> log_likelihoods(std::span<const uint32_t> ids);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Continues several prompts in shared steps; each result is what a session of its own would give.
/// Needs LoadOptions::max_sessions >= prompts.size().
std::vector<Generation> generate_batch(const Model& model,
                                       std::span<const std::vector<uint32_t>> prompts,
                                       const GenerateOptions& options = {});

struct DeviceInfo {
  std::string spec;  ///< what LoadOptions::device takes
  std::string name;
  int64_t memory_bytes = 0;
  std::vector<std::string> features;
};
std::vector<DeviceInfo> devices();

std::string_view version();

}  // namespace v1
}  // namespace tessera
