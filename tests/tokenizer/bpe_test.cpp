#include "tokenizer/bpe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tiny_vocabulary.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {
namespace {

std::vector<std::string> encode(TinyVocabulary& tiny, std::string_view piece,
                                Bpe::Options options = {}) {
  const TokenizerData data = tiny.data();
  const Vocabulary vocabulary(data);
  const Bpe bpe(vocabulary, data.merges, "");
  Bpe::Scratch scratch;
  std::vector<TokenId> ids;
  bpe.encode(piece, options, scratch, ids);
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.emplace_back(vocabulary.text(id));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Bpe, MergesByRankThenFromTheLeft) {
  TinyVocabulary tiny;
  tiny.add_all_bytes();
  tiny.add_merge("b", "c");
  tiny.add_merge("a", "b");
  tiny.add_merge("a", "a");
  EXPECT_EQ(encode(tiny, "abc"), (Texts{"a", "bc"}));
  EXPECT_EQ(encode(tiny, "abab"), (Texts{"ab", "ab"}));
  EXPECT_EQ(encode(tiny, "aaa"), (Texts{"aa", "a"}));
  EXPECT_EQ(encode(tiny, ""), Texts{});
}

TEST(Bpe, AMergeWhoseResultHasNoTokenIsSkipped) {
  TinyVocabulary tiny;
  tiny.add_all_bytes();
  tiny.merges.push_back("i n");  // there is no token "in"
  tiny.merges.push_back("in u");
  tiny.add_merge("n", "u");
  tiny.add_merge("nu", "s");
  EXPECT_EQ(encode(tiny, "Linus"), (Texts{"L", "i", "nus"}));
}

TEST(Bpe, AByteWithoutATokenIsDroppedUnlessMerged) {
  TinyVocabulary tiny;
  tiny.add("a");
  tiny.add_merge("a", "b");  // no token for "b" alone
  EXPECT_EQ(encode(tiny, "bab"), (Texts{"ab"}));
  EXPECT_EQ(encode(tiny, "b"), Texts{});
}

TEST(Bpe, TheFirstOfEqualMergesCounts) {
  TinyVocabulary tiny;
  tiny.add_all_bytes();
  tiny.add_merge("a", "b");
  tiny.add_merge("b", "c");
  tiny.merges.push_back("a b");
  EXPECT_EQ(encode(tiny, "abc"), (Texts{"ab", "c"}));
}

TEST(Bpe, IgnoringMergesUsesTheTokenOfTheWholePiece) {
  TinyVocabulary tiny;
  tiny.add_all_bytes();
  tiny.add("\u0120xyz");
  EXPECT_EQ(encode(tiny, " xyz").size(), 4U);
  EXPECT_EQ(encode(tiny, " xyz", {.ignore_merges = true}), (Texts{"\u0120xyz"}));
  EXPECT_EQ(encode(tiny, "xyz", {.ignore_merges = true}).size(), 3U);
}

TEST(Bpe, MergesNeverMakeAControlToken) {
  TinyVocabulary tiny;
  tiny.add_all_bytes();
  tiny.merges.push_back("a b");
  tiny.add("ab", TokenType::kControl);
  EXPECT_EQ(encode(tiny, "ab"), (Texts{"a", "b"}));
  EXPECT_EQ(encode(tiny, "ab", {.ignore_merges = true}), (Texts{"a", "b"}));
}

TEST(Bpe, MalformedMergesAreRefused) {
  for (const char* merge : {"", " ", "a", "a ", " b", "a b c", "a  b", "a\n"}) {
    TinyVocabulary tiny;
    tiny.add_all_bytes();
    tiny.merges = {"a b", merge};
    expect_error(ErrorKind::kInvalidFile, {"tokenizer.ggml.merges", "merge 1"},
                 [&] { encode(tiny, "ab"); });
  }
}

// The definition, literally: look at all pairs, merge the best, again.
std::vector<std::string> encode_plainly(const std::vector<std::string>& merges,
                                        std::vector<std::string> symbols) {
  std::map<std::string, size_t> rank;
  for (size_t i = 0; i < merges.size(); ++i) rank.emplace(merges[i], i);
  for (;;) {
    size_t best = merges.size();
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = rank.find(symbols[i] + " " + symbols[i + 1]);
      if (found != rank.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, AgreesWithThePlainDefinitionOnRandomMerges) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    TinyVocabulary tiny;
    tiny.tokens = {"a", "b", "c"};
    tiny.types = {1, 1, 1};
    for (int i = 0; i < 12; ++i) {
      const std::string left = tiny.tokens[random() % tiny.tokens.size()];
      const std::string right = tiny.tokens[random() % tiny.tokens.size()];
      const bool known =
          std::find(tiny.tokens.begin(), tiny.tokens.end(), left + right) != tiny.tokens.end();
      tiny.merges.push_back(left + " " + right);
      if (!known) tiny.add(left + right);
    }
    std::shuffle(tiny.merges.begin(), tiny.merges.end(), random);
    std::string piece;
    Texts symbols;
    for (auto i = random() % 40; i > 0; --i) {
      piece += "abc"[random() % 3];
      symbols.emplace_back(1, piece.back());
    }
    EXPECT_EQ(encode(tiny, piece), encode_plainly(tiny.merges, symbols)) << piece;
  }
}

TEST(Bpe, GivesTheIdsOfGpt2) {
  const nlohmann::json golden = read_golden("gpt2_ids.json");
  TinyVocabulary tiny;
  for (const auto& token : golden["tokens"]) tiny.add(token);
  tiny.merges = golden["merges"].get<std::vector<std::string>>();
  const Tokenizer tokenizer(tiny.data());
  for (const auto& golden_case : golden["cases"]) {
    std::vector<TokenId> ids;
    for (const TokenId id : tokenizer.encode(golden_case[0].get<std::string>())) {
      ids.push_back(golden["gpt2_ids_of_tokens"][id]);
    }
    EXPECT_EQ(ids, golden_case[1].get<std::vector<TokenId>>()) << golden_case[0];
  }
}

}  // namespace
}  // namespace tessera
