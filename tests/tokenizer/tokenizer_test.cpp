#include "tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tiny_vocabulary.hpp"

namespace tessera {
namespace {

using Ids = std::vector<TokenId>;

// Ids 0..255 are the bytes.
struct TokenizerTest : testing::Test {
  TokenizerTest() {
    tiny.add_all_bytes();
    bos = tiny.add("<s>", TokenType::kControl);
    eos = tiny.add("</s>", TokenType::kControl);
    user = tiny.add("[toxicity=0]", TokenType::kUserDefined);
    tiny.fields.bos_id = bos;
    tiny.fields.eos_id = eos;
  }
  Ids encode(std::string_view text, const EncodeOptions& options = {}) {
    return Tokenizer(tiny.data()).encode(text, options);
  }

  TinyVocabulary tiny;
  TokenId bos, eos, user;
};

TEST_F(TokenizerTest, ControlTokensAreParsedOnlyWhenAsked) {
  EXPECT_EQ(encode("a<s>b"), (Ids{'a', '<', 's', '>', 'b'}));
  EXPECT_EQ(encode("a<s>b", {.parse_special = true}), (Ids{'a', bos, 'b'}));
}

TEST_F(TokenizerTest, UserDefinedTokensAlwaysAreOneToken) {
  EXPECT_EQ(encode("[toxicity=0]!"), (Ids{user, '!'}));
  EXPECT_EQ(encode("x[toxicity=0]", {.parse_special = true}), (Ids{'x', user}));
}

TEST_F(TokenizerTest, BosAndEosFollowTheFileUnlessTold) {
  EXPECT_EQ(encode("a"), (Ids{'a'}));
  EXPECT_EQ(encode("a", {.bos = AddToken::kAlways, .eos = AddToken::kAlways}),
            (Ids{bos, 'a', eos}));
  tiny.fields.add_bos = true;
  tiny.fields.add_eos = true;
  EXPECT_EQ(encode("a"), (Ids{bos, 'a', eos}));
  EXPECT_EQ(encode(""), (Ids{bos, eos}));
  EXPECT_EQ(encode("a", {.bos = AddToken::kNever, .eos = AddToken::kNever}), (Ids{'a'}));
}

TEST_F(TokenizerTest, BosAndEosAreNeverDoubled) {
  tiny.fields.add_bos = true;
  tiny.fields.add_eos = true;
  EXPECT_EQ(encode("<s>a</s>", {.parse_special = true}), (Ids{bos, 'a', eos}));
  EXPECT_EQ(encode("<s>", {.parse_special = true}), (Ids{bos, eos}));
  EXPECT_EQ(encode("<s><s>", {.parse_special = true}), (Ids{bos, bos, eos}));
}

TEST_F(TokenizerTest, WithoutTheFlagTheLabelDecidesOnBos) {
  tiny.fields.pre = "llama-bpe";
  EXPECT_EQ(encode("a"), (Ids{bos, 'a'}));
  tiny.fields.add_bos = false;
  EXPECT_EQ(encode("a"), (Ids{'a'}));
  tiny.fields.add_bos.reset();
  tiny.fields.bos_id.reset();
  EXPECT_EQ(encode("a"), (Ids{'a'}));
}

TEST_F(TokenizerTest, BosThatDoesNotExistIsAnError) {
  tiny.fields.bos_id.reset();
  expect_error(ErrorKind::kInvalidArgument, {"BOS"},
               [&] { encode("a", {.bos = AddToken::kAlways}); });
  tiny.fields.add_bos = true;
  expect_error(ErrorKind::kInvalidFile, {"add_bos_token", "bos_token_id"}, [&] { encode("a"); });
}

TEST_F(TokenizerTest, DecodeLeavesControlTokensOutUnlessAsked) {
  const Tokenizer tokenizer(tiny.data());
  const Ids ids = {bos, 'a', user, eos};
  EXPECT_EQ(tokenizer.decode(ids), "a[toxicity=0]");
  EXPECT_EQ(tokenizer.decode(ids, {.render_special = true}), "<s>a[toxicity=0]</s>");
  EXPECT_EQ(tokenizer.token_to_bytes(eos), "");
  EXPECT_EQ(tokenizer.token_to_bytes(' '), " ");
}

TEST_F(TokenizerTest, AnIdOutsideTheVocabularyIsAnError) {
  const Tokenizer tokenizer(tiny.data());
  expect_error(ErrorKind::kInvalidArgument, {"below 259", "got 259"},
               [&] { tokenizer.decode(Ids{259}); });
  EXPECT_FALSE(tokenizer.is_end(259));
  EXPECT_TRUE(tokenizer.is_end(eos));
}

TEST_F(TokenizerTest, AnotherKindOfTokenizerIsRefused) {
  tiny.fields.model = "llama";
  expect_error(ErrorKind::kUnsupported, {"tokenizer.ggml.model", "\"llama\"", "gpt2"},
               [&] { encode("a"); });
}

TEST_F(TokenizerTest, ItOwnsEverythingAndCanBeMoved) {
  auto source = std::make_unique<TinyVocabulary>(tiny);
  Tokenizer first(source->data());
  source.reset();
  const Tokenizer tokenizer = std::move(first);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("lim\u00F3n <s>")), "lim\u00F3n <s>");
}

TEST_F(TokenizerTest, StrangeTextsRoundTrip) {
  using namespace std::string_literals;
  const Tokenizer tokenizer(tiny.data());
  for (const std::string& text :
       {"\0a\0"s, "\uFFFE\uFFFF"s, "\U0010FFFF"s, "\xC0\x80"s, "\xED\xA0\x80"s, "\xE2\x82"s,
        "a\xFF\xFE b"s, "\xF4\x90\x80\x80"s, "\r\n\t \u2028"s}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST_F(TokenizerTest, AMebibyteOfOneCharacterIsFast) {
  // Merges as a trained vocabulary has them: runs of 2, 4, 8, 16.
  for (const std::string& unit : {std::string("a"), std::string("\u0120")}) {
    std::string run = unit;
    for (int doubling = 0; doubling < 4; ++doubling) {
      tiny.add_merge(run, run);
      run += run;
    }
  }
  for (const char* label : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
    tiny.fields.pre = label;
    const Tokenizer tokenizer(tiny.data());
    for (const char c : {'a', ' ', '\xFF'}) {
      const std::string text(size_t{1} << 20, c);
      const double start_s = cpu_s();
      const Ids ids = tokenizer.encode(text, {.bos = AddToken::kNever});
      const double took_s = cpu_s() - start_s;
      EXPECT_EQ(ids.size(), c == '\xFF' ? text.size() : text.size() / 16) << label;
      EXPECT_LT(took_s, 2 * kSlowBuildFactor) << label << " '" << c << "'";
    }
  }
}

TEST_F(TokenizerTest, SpecialTokensThatNearlyMatchStayLinear) {
  std::string nearly(100'000, 'a');
  tiny.add(nearly += 'b', TokenType::kUserDefined);
  const TokenId two = tiny.add("aa", TokenType::kUserDefined);
  const Tokenizer tokenizer(tiny.data());
  const double start_s = cpu_s();
  EXPECT_EQ(tokenizer.encode(std::string(size_t{1} << 20, 'a')), Ids(size_t{1} << 19, two));
  EXPECT_LT(cpu_s() - start_s, 5 * kSlowBuildFactor);
}

TEST_F(TokenizerTest, AMillionTokensLoad) {
  for (int i = 0; i < 1'000'000; ++i) tiny.add("token" + std::to_string(i));
  const TokenId last = tiny.add("[last]", TokenType::kUserDefined);
  const Tokenizer tokenizer(tiny.data());
  EXPECT_EQ(tokenizer.encode("[last]"), (Ids{last}));
}

}  // namespace
}  // namespace tessera
