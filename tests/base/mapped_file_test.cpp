#include "base/mapped_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.hpp"

namespace tessera {
namespace {

std::filesystem::path write_file(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

ErrorKind kind_of_opening(const std::filesystem::path& path) {
  try {
    MappedFile::open(path);
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error for " << path;
  return ErrorKind::kCancelled;
}

TEST(MappedFile, HoldsTheBytesAfterAMove) {
  MappedFile file = MappedFile::open(write_file("bytes", "tessera"));
  const MappedFile moved = std::move(file);
  ASSERT_EQ(moved.bytes().size(), 7u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "tessera", 7), 0);
}

TEST(MappedFile, AnEmptyFileIsEmpty) {
  EXPECT_TRUE(MappedFile::open(write_file("empty", "")).bytes().empty());
}

TEST(MappedFile, MissingFilesAndFoldersAreErrors) {
  EXPECT_EQ(kind_of_opening("/nonexistent/file"), ErrorKind::kIo);
  EXPECT_EQ(kind_of_opening(testing::TempDir()), ErrorKind::kIo);
}

}  // namespace
}  // namespace tessera
