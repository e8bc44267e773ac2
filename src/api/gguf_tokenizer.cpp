#include "api/gguf_tokenizer.hpp"

#include <limits>

#include "base/error.hpp"

namespace tessera {

Tokenizer read_gguf_tokenizer(const GgufFile& file, const std::string& pretokenizer) {
  constexpr int64_t kAnyMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kAnyMax = std::numeric_limits<int64_t>::max();
  // The tokenizer knows which ids and types exist; here only the kind of value matters.
  const auto id = [&](const char* key) { return file.optional_int(key, kAnyMin, kAnyMax); };

  TokenizerData data;
  data.source = file.where();
  data.model = file.require_string("tokenizer.ggml.model");
  data.tokens = file.require_strings("tokenizer.ggml.tokens");
  const auto types = file.optional_ints("tokenizer.ggml.token_type", kAnyMin, kAnyMax);
  if (types) data.types = *types;
  const auto scores = file.optional_floats("tokenizer.ggml.scores");
  if (scores && scores->size() != data.tokens.size()) {
    fail(ErrorKind::kInvalidFile, file.where(), "tokenizer.ggml.scores has {} values for {} tokens",
         scores->size(), data.tokens.size());
  }
  if (data.model == "gpt2") {
    data.pre = pretokenizer.empty() ? file.require_string("tokenizer.ggml.pre") : pretokenizer;
    data.merges = file.require_strings("tokenizer.ggml.merges");
  }
  data.bos_id = id("tokenizer.ggml.bos_token_id");
  data.eos_id = id("tokenizer.ggml.eos_token_id");
  data.unk_id = id("tokenizer.ggml.unknown_token_id");
  data.eot_id = id("tokenizer.ggml.eot_token_id");
  data.eom_id = id("tokenizer.ggml.eom_token_id");
  data.add_bos = file.optional_bool("tokenizer.ggml.add_bos_token");
  data.add_eos = file.optional_bool("tokenizer.ggml.add_eos_token");
  return Tokenizer(data);
}

}  // namespace tessera
