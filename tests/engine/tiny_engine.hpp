#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/devices.hpp"
#include "engine/engine.hpp"
#include "formats/gguf.hpp"
#include "models/llama_gguf.hpp"
#include "support/tiny_model.hpp"

namespace tessera {

struct TinyEngineOptions {
  std::string device = "cpu";
  std::string isa = {};  ///< highest tier; empty: the best
  int n_threads = 2;
  Activations activations = Activations::kExact;
  bool only_reference = false;  ///< no kernels: every op on its f64 reference
  EngineOptions engine = {.context = 128,
                          .max_sequences = 8,
                          .max_step_tokens = 64,
                          .kv_dtype = DType::kF32,
                          .allow_reference = true,
                          .trace_tensors = {}};
};

/// A tiny random model with all that it takes to run it.
class TinyEngine {
 public:
  explicit TinyEngine(const TinyEngineOptions& options = {}, const TinyModelOptions& tiny = {}) {
    static int n_files = 0;
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("tessera-tiny-{}-{}.gguf", ::getpid(), n_files++);
    write_tiny_model(path_, tiny);
    file_ = GgufFile::open(path_);
    const DeviceRegistry::Choice choice = device_registry().find(options.device);
    const DeviceOptions device_options = {.n_threads = options.n_threads, .isa = options.isa};
    device_ = choice.kind->make(choice.index, device_options);
    model_ = load_gguf_model(*file_, *device_, options.activations);
    KernelTable table = choice.kind->make_table(*device_, device_options);
    if (options.only_reference) {
      for (const std::string& op : table.ops()) table.force(op, "reference");
    }
    engine_ = std::make_unique<Engine>(*device_, std::move(table), *model_, options.engine);
  }
  ~TinyEngine() { std::filesystem::remove(path_); }

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  const LanguageModel& model() const { return *model_; }
  const std::filesystem::path& path() const { return path_; }

  /// Logits of all tokens of a fresh sequence, run in chunks.
  std::vector<float> logits(const std::vector<uint32_t>& ids, size_t chunk) {
    Sequence sequence(*engine_);
    StepResult step;
    std::vector<float> all;
    for (size_t at = 0; at < ids.size(); at += chunk) {
      const auto part = std::span(ids).subspan(at, std::min(chunk, ids.size() - at));
      const StepRequest request = {&sequence, part, LogitRows::kAll};
      engine_->step({&request, 1}, true, step);
      all.insert(all.end(), step.logits.begin(), step.logits.end());
    }
    return all;
  }

 private:
  std::filesystem::path path_;
  std::optional<GgufFile> file_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Engine> engine_;
};

/// Ids of the tiny vocabulary, different for every seed.
inline std::vector<uint32_t> tiny_ids(size_t n, uint32_t seed) {
  std::vector<uint32_t> ids;
  uint32_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(3 + (state >> 16) % 256);
  }
  return ids;
}

}  // namespace tessera
