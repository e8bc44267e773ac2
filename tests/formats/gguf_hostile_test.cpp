// The reader on damaged and malicious files: it may only answer with one clean line. Run under
// AddressSanitizer these tests also show that nothing outside the file is touched, because every
// input lies in a heap block of exactly its size.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "formats/gguf.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

const std::filesystem::path kTests = TESSERA_TEST_DATA;

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const MappedFile map = MappedFile::open(path);
  return {map.bytes().begin(), map.bytes().end()};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

struct Outcome {
  bool refused = false;
  std::string message;
};

/// Parses a copy of `bytes`. Fails the test when the error is of the wrong kind or form, or when a
/// view of the accepted file lies outside it.
Outcome parse(std::span<const std::byte> bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  const std::span<const std::byte> input(copy.get(), bytes.size());
  try {
    const GgufFile file = GgufFile::parse(input, "input");
    for (const GgufTensor& tensor : file.tensors()) {
      EXPECT_GE(tensor.bytes.data(), input.data());
      EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), input.data() + input.size());
    }
    return {};
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::kInvalidFile));
    EXPECT_TRUE(std::ranges::none_of(message, [](unsigned char c) { return c < 0x20; }))
        << "more than one line or control characters: " << message;
    EXPECT_LT(message.size(), 400U) << message;
    return {.refused = true, .message = message};
  }
}

TEST(GgufHostile, EveryFileIsRefusedForItsFault) {
  const nlohmann::json manifest =
      nlohmann::json::parse(std::ifstream(kTests / "hostile" / "manifest.json"));
  int n_reader = 0;
  int n_model = 0;
  for (const auto& item : manifest) {
    const std::string name = item.at("file");
    SCOPED_TRACE(name);
    const Outcome outcome = parse(read_file(kTests / "hostile" / name));
    if (item.at("level") == "reader") {
      ++n_reader;
      EXPECT_TRUE(outcome.refused);
      EXPECT_NE(lower(outcome.message).find(lower(item.at("expect"))), std::string::npos)
          << outcome.message;
    } else {
      ++n_model;  // well-formed: what is wrong with it, only the loader can know
      EXPECT_FALSE(outcome.refused) << outcome.message;
    }
  }
  EXPECT_GT(n_reader, 90);
  EXPECT_GT(n_model, 80);
}

/// Where the last tensor ends; what follows is padding.
size_t end_of_data(std::span<const std::byte> bytes) {
  const GgufFile file = GgufFile::parse(bytes, "good");
  uint64_t end = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    end = std::max(end, file.data_offset() + tensor.offset_bytes + tensor.bytes.size());
  }
  return static_cast<size_t>(end);
}

TEST(GgufHostile, EveryTruncationIsRefused) {
  const std::vector<std::byte> good = read_file(kTests / "data" / "good.gguf");
  const size_t end = end_of_data(good);
  for (size_t length = 0; length < end; ++length) {
    const Outcome outcome = parse(std::span(good).first(length));
    ASSERT_TRUE(outcome.refused) << "cut to " << length << " bytes of " << good.size();
  }
  EXPECT_FALSE(parse(std::span(good).first(end)).refused);
}

TEST(GgufHostile, TruncationsWithFlippedBytesDoNoHarm) {
  std::vector<std::byte> bytes = read_file(kTests / "data" / "good.gguf");
  std::mt19937 random(20240607);
  for (size_t length = bytes.size(); length > 0; --length) {
    const size_t tail = std::min<size_t>(length, 24);
    for (int flip = 0; flip < 3; ++flip) {
      bytes[length - 1 - random() % tail] ^= static_cast<std::byte>(1U << random() % 8);
    }
    parse(std::span(bytes).first(length));
    if (testing::Test::HasFailure()) FAIL() << "cut to " << length << " bytes";
  }
}

TEST(GgufHostile, FlippedBytesDoNoHarm) {
  const std::vector<std::byte> good = read_file(kTests / "data" / "good_small.gguf");
  std::mt19937 random(20240608);
  int n_refused = 0;
  for (int i = 0; i < 50000; ++i) {
    std::vector<std::byte> bytes = good;
    const unsigned n_flips = 1 + random() % 4;
    for (unsigned flip = 0; flip < n_flips; ++flip) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
    }
    n_refused += parse(bytes).refused;
    if (testing::Test::HasFailure()) FAIL() << "round " << i;
  }
  EXPECT_GT(n_refused, 1000);
}

}  // namespace
}  // namespace tessera
