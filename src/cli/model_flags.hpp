#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/common.hpp"
#include "tessera/tessera.hpp"

namespace tessera::cli {

/// The file behind MODEL: a path, or `default` for the bundled small model. Throws
/// Error{kInvalidFile} that says what to do when there is none.
std::filesystem::path resolve_model(const std::string& model);

/// Where `default` is looked for: $TESSERA_DEFAULT_MODEL, else the cache folder.
std::filesystem::path default_model_path();

/// MODEL and the flags of every command that runs one.
struct ModelFlags {
  std::string model;
  LoadOptions load;
  std::string activations = "auto", kv_type = "f16", trace_tensors;
  std::vector<std::string> force;

  /// Adds MODEL and `--pretokenizer`: all that tokenising needs.
  void add_tokenizer_flags(CLI::App& command);
  /// Adds MODEL and where and how it runs.
  void add_run_flags(CLI::App& command);

  struct Loaded {
    Model model;
    double load_ms;
  };
  /// Loads the model; tells `action` its path.
  Loaded load_model(Action& action) const;

 private:
  LoadOptions options() const;
};

/// "name, cpu (2 threads), activations q8, kv f16, context 4096".
std::string settings_line(const ModelInfo& info);

}  // namespace tessera::cli
