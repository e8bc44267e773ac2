#include "formats/gguf_writer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tessera/error.hpp"

namespace tessera {
namespace {

const std::filesystem::path kData = std::filesystem::path(TESSERA_TEST_DATA) / "data";

/// A folder of this process, removed at the end.
class GgufWriterTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("gguf_writer_" + std::to_string(getpid()));
};

GgufWriter copy_of(const GgufFile& file) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) writer.add(entry.key, entry.value);
  for (const GgufTensor& tensor : file.tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
  }
  return writer;
}

TEST_F(GgufWriterTest, CopiesFilesByteForByte) {
  // The originals were written by a Python program that shares no code with this writer.
  for (const char* name : {"good.gguf", "good_small.gguf"}) {
    const MappedFile original = MappedFile::open(kData / name);
    const GgufFile file = GgufFile::parse(original.bytes(), name);
    const std::vector<std::byte> copy = copy_of(file).to_bytes();
    EXPECT_TRUE(std::ranges::equal(copy, original.bytes())) << name;
  }
}

TEST_F(GgufWriterTest, WritesWhatToBytesGives) {
  const GgufFile file = GgufFile::open(kData / "good.gguf");
  const GgufWriter writer = copy_of(file);
  const std::filesystem::path path = folder_ / "copy.gguf";
  writer.write(path);
  writer.write(path);  // replaces
  EXPECT_TRUE(std::ranges::equal(MappedFile::open(path).bytes(), writer.to_bytes()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "a temporary file stayed";
}

TEST_F(GgufWriterTest, AlignsTensors) {
  const std::array<std::byte, 12> three = {};
  GgufWriter writer(4096);
  writer.add_tensor("a", DType::kF32, {3}, three);
  writer.add_tensor("b", DType::kF32, {3, 1}, three);
  const auto bytes = writer.to_bytes();
  const GgufFile file = GgufFile::parse(bytes, "aligned");
  EXPECT_EQ(file.alignment(), 4096U);
  EXPECT_EQ(file.data_offset(), 4096U);
  EXPECT_EQ(file.require_tensor("b", {3, 1}).offset_bytes, 4096U);
  EXPECT_EQ(bytes.size(), 3U * 4096U);
}

TEST_F(GgufWriterTest, FailsCleanlyWhenThePathCannotBeWritten) {
  try {
    GgufWriter().write(folder_ / "missing" / "x.gguf");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::kIo));
    EXPECT_NE(std::string(error.what()).find("x.gguf"), std::string::npos) << error.what();
  }
}

TEST_F(GgufWriterTest, RefusesWhatItsReaderWouldRefuse) {
  const std::array<std::byte, 64> bytes = {};
  const auto refused = [](auto action) {
    GgufWriter writer;
    writer.add_u32("taken", 1);
    try {
      action(writer);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kInvalidArgument;
    }
    return false;
  };
  EXPECT_TRUE(refused([](GgufWriter& w) { w.add_u32("taken", 2); }));
  EXPECT_TRUE(refused([](GgufWriter& w) { w.add_u32("", 2); }));
  EXPECT_TRUE(refused([](GgufWriter& w) { w.add_u32("\xFF", 2); }));
  EXPECT_TRUE(refused([](GgufWriter& w) { w.add_u32(std::string(65536, 'k'), 2); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) {
    w.add_tensor("t", DType::kF32, {16}, bytes);
    w.add_tensor("t", DType::kF32, {16}, bytes);
  }));
  EXPECT_TRUE(refused([&](GgufWriter& w) { w.add_tensor("t", DType::kF32, {15}, bytes); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) { w.add_tensor("t", DType::kF32, {}, bytes); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) { w.add_tensor("t", DType::kF32, {0, 16}, {}); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) { w.add_tensor("t", DType::kQ8_0, {33}, bytes); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) { w.add_tensor("t", DType::kQ8, {32}, bytes); }));
  EXPECT_TRUE(refused([&](GgufWriter& w) {
    w.add_tensor("t", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}, bytes);
  }));
  EXPECT_TRUE(refused([](GgufWriter&) { GgufWriter unaligned(12); }));
  EXPECT_TRUE(refused([](GgufWriter&) { GgufWriter unaligned(0); }));
}

}  // namespace
}  // namespace tessera
