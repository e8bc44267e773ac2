#include "api/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tessera {
namespace {

/// What comes out for pieces, each push on its own.
std::vector<std::string> chunks(StopMatcher& matcher, const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  for (const std::string& piece : pieces) out.push_back(matcher.push(piece));
  if (!matcher.stopped()) out.push_back(matcher.flush());
  return out;
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  // llama.cpp issue 10914: " Alice!" with stop "Alice:" came out twice.
  StopMatcher matcher({"\n", "Alice:"});
  EXPECT_EQ(chunks(matcher, {" Alice", "!"}), (std::vector<std::string>{" ", "Alice!", ""}));
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, DeliversWhatStandsBeforeAStopInTheSamePiece) {
  // llama.cpp pull request 9867: "?\n" with stop "\n" lost the "?".
  StopMatcher matcher({"\n"});
  EXPECT_EQ(chunks(matcher, {"?\n"}), (std::vector<std::string>{"?"}));
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  StopMatcher matcher({"</end>"});
  EXPECT_EQ(chunks(matcher, {"a<", "/e", "nd", "> b"}),
            (std::vector<std::string>{"a", "", "", ""}));
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, TheFirstInTheTextWinsNotTheFirstInTheList) {
  StopMatcher matcher({"later", "soon"});
  EXPECT_EQ(matcher.push("x soon later"), "x ");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, AHeldBeginningThatOverlapsItselfIsStillFound) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("a"), "");
  EXPECT_EQ(matcher.push("a"), "");
  EXPECT_EQ(matcher.push("a"), "a");
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, FlushGivesWhatWasHeld) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.push("please sto"), "please ");
  EXPECT_EQ(matcher.flush(), "sto");
}

TEST(StopMatcher, RefusesEmptyAndBrokenStops) {
  EXPECT_THROW(StopMatcher({""}), Error);
  EXPECT_THROW(StopMatcher({"\xff"}), Error);
}

TEST(StopMatcher, OfTwoThatEndTogetherTheLongerCounts) {
  StopMatcher matcher({"\n", "END\n"});
  EXPECT_EQ(matcher.push("text EN"), "text ");
  EXPECT_EQ(matcher.push("D\n"), "");
  EXPECT_TRUE(matcher.stopped());
}

/// However the text is cut, the output is the text before the stop that is complete first.
TEST(StopMatcher, AnyCutGivesTheSameText) {
  std::mt19937 random(1);
  const std::vector<std::string> alphabet = {"a", "b", "\n", "é", "🦙"};
  const auto text_of = [&](size_t n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text += alphabet[random() % alphabet.size()];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < 1 + random() % 3; ++i) stops.push_back(text_of(1 + random() % 4));
    std::string text, shown;
    StopMatcher matcher(stops);
    for (int i = 0; i < 30; ++i) {
      const std::string piece = text_of(random() % 4);
      text += piece;
      shown += matcher.push(piece);
      ASSERT_EQ(replace_invalid_utf8(shown), shown) << "a character was cut";
    }
    if (!matcher.stopped()) shown += matcher.flush();
    size_t first = std::string::npos;
    for (size_t n = 1; n <= text.size() && first == std::string::npos; ++n) {
      for (const std::string& stop : stops) {
        const auto so_far = std::string_view(text).substr(0, n);
        if (so_far.ends_with(stop)) first = std::min(first, n - stop.size());
      }
    }
    EXPECT_EQ(shown, text.substr(0, first));
    EXPECT_EQ(matcher.stopped(), first != std::string::npos);
  }
}

}  // namespace
}  // namespace tessera
