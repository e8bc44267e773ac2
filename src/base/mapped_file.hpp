#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tessera {

/// A file mapped read-only, whole. The bytes stay valid as long as this object lives; if another
/// process truncates the file meanwhile, touching them raises SIGBUS (the CLI turns it into an
/// error, a library cannot).
class MappedFile {
 public:
  /// Throws Error{kIo} when the file cannot be opened, is not a regular file or cannot be mapped.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace tessera
