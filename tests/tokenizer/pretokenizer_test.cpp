#include "tokenizer/pretokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tiny_vocabulary.hpp"

namespace tessera {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(std::string_view label, std::string_view text) {
  Pieces pieces;
  Pretokenizer(label, "").split(text, pieces);
  return pieces;
}

class PretokenizerGoldens : public testing::TestWithParam<std::string> {};

TEST_P(PretokenizerGoldens, CutsAsThePublishedPatternsDo) {
  const nlohmann::json goldens = read_golden("pretokenizer_splits.json");
  const Pretokenizer pretokenizer(GetParam(), "");
  const auto& expected = goldens["piece_bytes"][GetParam()];
  ASSERT_EQ(expected.size(), 400U);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string text = goldens["texts"][i];
    Pieces pieces;
    pretokenizer.split(text, pieces);
    std::vector<size_t> sizes;
    std::string joined;
    for (const std::string_view piece : pieces) {
      sizes.push_back(piece.size());
      joined += piece;
    }
    EXPECT_EQ(sizes, expected[i].get<std::vector<size_t>>()) << goldens["texts"][i];
    EXPECT_EQ(joined, text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PretokenizerGoldens,
                         testing::Values("default", "gpt-2", "smollm", "llama-bpe", "qwen2"),
                         [](const auto& test) {
                           return test.param.substr(0, test.param.find('-'));
                         });

TEST(Pretokenizer, InvalidBytesArePiecesOfTheirOwn) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xC0\x80 cd\xE2\x82"),
            (Pieces{"ab", "\xFF\xC0\x80", " cd", "\xE2\x82"}));
  EXPECT_EQ(split("gpt-2", "\xED\xA0\x80x"), (Pieces{"\xED\xA0\x80", "x"}));  // a lone surrogate
  EXPECT_EQ(split("gpt-2", "  \xFF"), (Pieces{"  ", "\xFF"}));
}

TEST(Pretokenizer, AnUnknownLabelIsAnErrorThatHelps) {
  expect_error(ErrorKind::kUnsupported,
               {"m.gguf", "\"viking\"", "--pretokenizer", "smollm", "llama-bpe", "qwen2"},
               [] { Pretokenizer("viking", "m.gguf"); });
  expect_error(ErrorKind::kUnsupported, {"got none"}, [] { Pretokenizer("", ""); });
}

TEST(Pretokenizer, LabelsOfOneFamilyCutAlike) {
  const std::string text = "They'LL pay 12345 \n\n now\u00a0!!\n";
  for (const char* label : {"llama3", "llama-v3", "falcon3", "lfm2"}) {
    EXPECT_EQ(split(label, text), split("llama-bpe", text)) << label;
    EXPECT_TRUE(Pretokenizer(label, "").ignore_merges());
    EXPECT_TRUE(Pretokenizer(label, "").adds_bos());
  }
  EXPECT_EQ(split("stablelm2", text), split("qwen2", text));
  EXPECT_EQ(split("starcoder", text), split("smollm", text));
  EXPECT_EQ(split("olmo", text), split("gpt-2", text));
  EXPECT_FALSE(Pretokenizer("qwen2", "").ignore_merges());
  EXPECT_FALSE(Pretokenizer("smollm", "").adds_bos());
}

// The interpreter of PCRE2 counts every step against the match limit, machine code does not; texts
// of this size would exceed a fixed limit in either.
TEST(Pretokenizer, LongRunsTakeLinearTime) {
  constexpr size_t kBytes = size_t{8} << 20;
  for (const char* label : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    for (const std::string_view unit :
         {" ", "a", "1", "\n", "\n ", " x", "'", "\u0301", "\xFF", "a\xFF"}) {
      std::string text;
      while (text.size() < kBytes / 8) text += unit;
      const double start_s = cpu_s();
      const Pieces pieces = split(label, text);
      EXPECT_LT(cpu_s() - start_s, 5 * kSlowBuildFactor) << label << " '" << unit << "'";
      size_t n_bytes = 0;
      for (const std::string_view piece : pieces) n_bytes += piece.size();
      EXPECT_EQ(n_bytes, text.size());
    }
    EXPECT_EQ(split(label, std::string(kBytes, ' ') + "x").size(), 2U) << label;
  }
}

}  // namespace
}  // namespace tessera
