#include "tokenizer/vocabulary.hpp"

#include <gtest/gtest.h>

#include "tiny_vocabulary.hpp"

namespace tessera {
namespace {

TEST(Vocabulary, KnowsBytesOfEveryType) {
  TinyVocabulary tiny;
  const TokenId space_a = tiny.add("\u0120a");
  const TokenId control = tiny.add("<\u0120>", TokenType::kControl);
  const TokenId byte = tiny.add("<0x0A>", TokenType::kByte);
  const TokenId user = tiny.add("il\u00D6ve\u010D", TokenType::kUserDefined);
  const Vocabulary vocabulary(tiny.data());
  EXPECT_EQ(vocabulary.bytes(space_a), " a");
  EXPECT_EQ(vocabulary.bytes(control), "<\u0120>");
  EXPECT_EQ(vocabulary.bytes(byte), "\n");
  EXPECT_EQ(vocabulary.bytes(user), "il\u00D6ve\u010D");
  EXPECT_EQ(vocabulary.text(space_a), "\u0120a");
}

TEST(Vocabulary, CharactersOutsideTheAlphabetStandForThemselves) {
  TinyVocabulary tiny;
  tiny.add("\u6587 \xFF\u0120");
  EXPECT_EQ(Vocabulary(tiny.data()).bytes(0), "\u6587 \xFF ");
}

TEST(Vocabulary, TheFirstOfEqualTokensIsFound) {
  TinyVocabulary tiny;
  tiny.add("a", TokenType::kControl);
  const TokenId first = tiny.add("a");
  tiny.add("a");
  const Vocabulary vocabulary(tiny.data());
  EXPECT_EQ(vocabulary.find_normal("a"), first);
  EXPECT_EQ(vocabulary.find_special("a"), 0U);
  EXPECT_EQ(vocabulary.find_normal("b"), std::nullopt);
}

TEST(Vocabulary, EndTokensAreThoseNamedAndWellKnownMarks) {
  TinyVocabulary tiny;
  tiny.add("a");
  tiny.add("<|eot_id|>", TokenType::kControl);
  tiny.add("<|end|>");  // ordinary text, not a control token
  tiny.add("b", TokenType::kControl);
  tiny.add("c", TokenType::kControl);
  tiny.fields.eos_id = 4;
  tiny.fields.eot_id = 3;
  tiny.fields.more_end_ids = {3, 4};
  const Vocabulary vocabulary(tiny.data());
  EXPECT_EQ(vocabulary.end_ids(), (std::vector<TokenId>{1, 3, 4}));
  EXPECT_TRUE(vocabulary.is_end(3));
  EXPECT_FALSE(vocabulary.is_end(2));
  EXPECT_FALSE(vocabulary.is_end(UINT32_MAX));
}

TEST(Vocabulary, WithoutTypesEveryTokenIsNormal) {
  TinyVocabulary tiny;
  tiny.add("<|end|>", TokenType::kControl);
  tiny.types.clear();
  EXPECT_EQ(Vocabulary(tiny.data()).type(0), TokenType::kNormal);
}

struct BadCase {
  const char* name;
  void (*damage)(TinyVocabulary&);
  std::vector<std::string> message;
};

class BadVocabulary : public testing::TestWithParam<BadCase> {};

TEST_P(BadVocabulary, IsRefusedWithTheReason) {
  TinyVocabulary tiny;
  tiny.fields.source = "model.gguf";
  tiny.add("a");
  tiny.add("b");
  GetParam().damage(tiny);
  std::vector<std::string> parts = GetParam().message;
  parts.push_back("model.gguf");
  expect_error(ErrorKind::kInvalidFile, parts, [&] { Vocabulary v(tiny.data()); });
}

INSTANTIATE_TEST_SUITE_P(
    All, BadVocabulary,
    testing::Values(
        BadCase{"empty",
                [](TinyVocabulary& v) { v.tokens.clear(), v.types.clear(); },
                {"tokenizer.ggml.tokens", "got 0"}},
        BadCase{"empty_token", [](TinyVocabulary& v) { v.add(""); }, {"token 2 is empty"}},
        BadCase{"few_types",
                [](TinyVocabulary& v) { v.types.pop_back(); },
                {"token_type", "expected 2", "got 1"}},
        BadCase{"type_7", [](TinyVocabulary& v) { v.types[1] = 7; }, {"token 1", "got 7"}},
        BadCase{"type_negative", [](TinyVocabulary& v) { v.types[1] = -1; }, {"got -1"}},
        BadCase{"byte_token",
                [](TinyVocabulary& v) { v.add("<0xG0>", TokenType::kByte); },
                {"token 2", "<0xNN>"}},
        BadCase{"bos",
                [](TinyVocabulary& v) { v.fields.bos_id = 2; },
                {"bos_token_id", "below 2", "got 2"}},
        BadCase{"eos", [](TinyVocabulary& v) { v.fields.eos_id = -1; }, {"eos_token_id"}},
        BadCase{
            "unk", [](TinyVocabulary& v) { v.fields.unk_id = INT64_MAX; }, {"unknown_token_id"}},
        BadCase{"eot", [](TinyVocabulary& v) { v.fields.eot_id = 1LL << 32; }, {"eot_token_id"}},
        BadCase{"eom", [](TinyVocabulary& v) { v.fields.eom_id = 11; }, {"eom_token_id"}},
        BadCase{"more",
                [](TinyVocabulary& v) {
                  v.fields.more_end_ids = {0, 9};
                },
                {"got 9"}}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tessera
