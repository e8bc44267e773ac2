#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "tiny_vocabulary.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {
namespace {

// All bytes, some merges across them, control and user-defined tokens.
Tokenizer make_tokenizer(std::string_view label) {
  TinyVocabulary tiny;
  tiny.fields.pre = label;
  tiny.add_all_bytes();
  tiny.add_merge("a", "b");
  tiny.add_merge("\u0120", "\u0120");
  tiny.add_merge("\u0120", "a");
  tiny.add_merge("\u0120a", "b");
  tiny.add_merge("\u00C3", "\u00A9");
  tiny.add_merge("<", "s");
  tiny.add("<s>", TokenType::kControl);
  tiny.add("<0x61>", TokenType::kByte);
  tiny.add(" user ", TokenType::kUserDefined);
  return Tokenizer(tiny.data());
}

// Bytes and texts in which something happens, in any order.
rc::Gen<std::string> any_bytes() {
  const auto fragment = rc::gen::weightedOneOf<std::string>(
      {{3, rc::gen::element<std::string>("a", "b", " ", "ab", " ab", "\n", "\u00E9", "12", "'s",
                                         "<s>", " user ", "\U0001F355", "\u4ECA", "<0x61>")},
       {2, rc::gen::map(rc::gen::arbitrary<char>(), [](char c) { return std::string(1, c); })}});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(fragment),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

constexpr const char* kLabels[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"};

TEST(TokenizerProperty, AnyBytesRoundTrip) {
  for (const char* label : kLabels) {
    const Tokenizer tokenizer = make_tokenizer(label);
    EXPECT_TRUE(rc::check(label, [&] {
      const std::string text = *any_bytes();
      const bool parse_special = *rc::gen::arbitrary<bool>();
      const auto ids = tokenizer.encode(text, {.parse_special = parse_special});
      RC_ASSERT(tokenizer.decode(ids, {.render_special = true}) == text);
    }));
  }
}

TEST(TokenizerProperty, TextNeverMakesAControlToken) {
  const Tokenizer tokenizer = make_tokenizer("llama-bpe");
  EXPECT_TRUE(rc::check([&] {
    for (const TokenId id : tokenizer.encode(*any_bytes())) {
      RC_ASSERT(!tokenizer.vocabulary().is_special(id));
    }
  }));
}

TEST(TokenizerProperty, StreamedTextIsTheWholeText) {
  EXPECT_TRUE(rc::check([] {
    const std::string bytes = *any_bytes();
    Utf8Stream stream;
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n_bytes = *rc::gen::inRange<size_t>(1, 6);
      RC_ASSERT(stream.push("").empty());
      const std::string part = stream.push(std::string_view(bytes).substr(at, n_bytes));
      RC_ASSERT(replace_invalid_utf8(part) == part);  // whole characters only
      text += part;
      at += n_bytes;
    }
    text += stream.flush();
    RC_ASSERT(text == replace_invalid_utf8(bytes));
  }));
}

TEST(TokenizerProperty, StreamedTokensAreTheWholeText) {
  const Tokenizer tokenizer = make_tokenizer("smollm");
  EXPECT_TRUE(rc::check([&] {
    const auto ids = *rc::gen::container<std::vector<TokenId>>(
        rc::gen::inRange<TokenId>(0, static_cast<TokenId>(tokenizer.size())));
    Utf8Stream stream;
    std::string text;
    for (const TokenId id : ids) text += stream.push(tokenizer.token_to_bytes(id));
    text += stream.flush();
    RC_ASSERT(text == replace_invalid_utf8(tokenizer.decode(ids)));
  }));
}

}  // namespace
}  // namespace tessera
