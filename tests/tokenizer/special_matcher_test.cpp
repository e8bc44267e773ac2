#include "tokenizer/special_matcher.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tessera {
namespace {

struct Found {
  size_t begin;
  TokenId id;
  bool operator==(const Found&) const = default;
};
void PrintTo(const Found& found, std::ostream* out) {
  *out << found.begin << ":" << found.id;
}

std::vector<Found> find_all(const std::vector<std::string>& texts, std::string_view text) {
  SpecialMatcher matcher;
  for (TokenId id = 0; id < texts.size(); ++id) matcher.add(texts[id], id);
  matcher.finish();
  std::vector<Found> found;
  for (const auto& match : matcher.find_all(text)) {
    EXPECT_EQ(text.substr(match.begin, match.n_bytes), texts[match.id]);
    found.push_back({match.begin, match.id});
  }
  return found;
}

TEST(SpecialMatcher, TakesTheLongestAtTheLeftmostPlace) {
  EXPECT_EQ(find_all({"<a>", "<a><b>", "b>"}, "x<a><b><a>"), (std::vector<Found>{{1, 1}, {7, 0}}));
  EXPECT_EQ(find_all({"abcd", "bc"}, "abcabcd"), (std::vector<Found>{{1, 1}, {3, 0}}));
  EXPECT_EQ(find_all({"ab", "bcd"}, "abcd"), (std::vector<Found>{{0, 0}}));
}

TEST(SpecialMatcher, OfEqualTextsTheFirstCounts) {
  EXPECT_EQ(find_all({"x", "x"}, "x"), (std::vector<Found>{{0, 0}}));
}

TEST(SpecialMatcher, NothingInNothing) {
  EXPECT_TRUE(find_all({}, "abc").empty());
  EXPECT_TRUE(find_all({"a"}, "").empty());
}

TEST(SpecialMatcher, AgreesWithAPlainSearch) {
  std::mt19937 random(3);
  const auto word = [&](uint32_t max) {
    std::string text;
    for (auto i = 1 + random() % max; i > 0; --i) text += "ab"[random() % 2];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> texts;
    for (auto i = random() % 6; i > 0; --i) texts.push_back(word(5));
    const std::string text = word(60);
    std::vector<Found> expected;
    for (size_t at = 0; at < text.size();) {
      size_t n_bytes = 0;
      TokenId best = 0;
      for (TokenId id = 0; id < texts.size(); ++id) {
        if (texts[id].size() > n_bytes && text.compare(at, texts[id].size(), texts[id]) == 0) {
          n_bytes = texts[id].size();
          best = id;
        }
      }
      if (n_bytes != 0) expected.push_back({at, best});
      at += n_bytes == 0 ? 1 : n_bytes;
    }
    EXPECT_EQ(find_all(texts, text), expected) << text;
  }
}

}  // namespace
}  // namespace tessera
