#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "support/tiny_model.hpp"
#include "tessera/tessera.hpp"

namespace tessera {

/// A tiny random model in a file that goes away with this object.
class TinyFile {
 public:
  explicit TinyFile(const TinyModelOptions& options = {}) {
    static int n_files = 0;
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("tessera-api-{}-{}.gguf", ::getpid(), n_files++);
    write_tiny_model(path_, options);
  }
  ~TinyFile() { std::filesystem::remove(path_); }
  TinyFile(const TinyFile&) = delete;
  TinyFile& operator=(const TinyFile&) = delete;

  Model load(LoadOptions options = {}) const {
    if (options.n_threads == 0) options.n_threads = 2;
    options.allow_reference = true;
    return Model::load(path_, options);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera
