#pragma once

#include <memory>
#include <optional>

#include "device/device.hpp"
#include "engine/engine.hpp"
#include "formats/gguf.hpp"
#include "models/language_model.hpp"
#include "tessera/tessera.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {
inline namespace v1 {

// Members die in reverse order: the engine before the model, the model before what it points into.
struct Model::Impl {
  std::unique_ptr<Device> device;
  std::optional<GgufFile> file;
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<LanguageModel> language_model;
  std::unique_ptr<Engine> engine;
  ModelInfo info;

  /// Ids of a prompt: special-token text parsed, BOS as the file says.
  std::vector<uint32_t> prompt_ids(std::string_view prompt) const;
};

}  // namespace v1

/// Engine::plan, for rooflines.
inline std::vector<OpRecord> plan_records(const Model& model, int64_t n_tokens, int64_t n_past,
                                          Engine::Tokens tokens = Engine::Tokens::kOfOneSequence) {
  return model.impl()->engine->plan(n_tokens, n_past, tokens);
}

}  // namespace tessera
