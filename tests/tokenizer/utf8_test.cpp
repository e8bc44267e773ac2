#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tiny_vocabulary.hpp"

namespace tessera {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(Utf8, ReplacesInvalidBytesAsPythonDoes) {
  const nlohmann::json cases = read_golden("utf8_replace.json");
  ASSERT_EQ(cases.size(), 600U);
  for (const auto& golden : cases) {
    EXPECT_EQ(replace_invalid_utf8(from_hex(golden[0])), golden[1].get<std::string>()) << golden;
  }
}

TEST(Utf8, StreamingByteByByteGivesTheSame) {
  for (const auto& golden : read_golden("utf8_replace.json")) {
    Utf8Stream stream;
    std::string text;
    for (const char byte : from_hex(golden[0])) text += stream.push({&byte, 1});
    text += stream.flush();
    EXPECT_EQ(text, golden[1].get<std::string>()) << golden;
  }
}

TEST(Utf8Stream, HoldsACharacterBackUntilItIsWhole) {
  Utf8Stream stream;  // U+1F638
  EXPECT_EQ(stream.push("x\xF0\x9F\x98"), "x");
  EXPECT_EQ(stream.push("\xB8"), "\xF0\x9F\x98\xB8");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, AnIncompleteCharacterBeforeTextIsReplaced) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push(" word"), "\xEF\xBF\xBD word");
}

TEST(Utf8Stream, FlushEndsAnIncompleteCharacterAndStartsAnew) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE2"), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push("\x82"), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8, WritesCodePointsOfEveryLength) {
  std::string text;
  for (const uint32_t c : {0x24U, 0x7FFU, 0x20ACU, 0xFFFEU, 0x10FFFFU}) append_utf8(c, text);
  EXPECT_EQ(text, "$\u07FF\u20AC\uFFFE\U0010FFFF");
}

}  // namespace
}  // namespace tessera
