#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace tessera {

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const auto refuse = [&](const char* action) {
    fail(ErrorKind::kIo, path.string(), "cannot {}: {}", action, std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse("open");
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    ::close(fd);
    refuse("read its size");
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(ErrorKind::kIo, path.string(), "not a regular file; give the path of a file");
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* address = nullptr;
  if (size > 0) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (address == MAP_FAILED) refuse("map into memory");
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tessera
