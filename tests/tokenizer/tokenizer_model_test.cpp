// Needs the default model's file: set TESSERA_DEFAULT_MODEL to its path.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "formats/gguf.hpp"
#include "tiny_vocabulary.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {
namespace {

using Ids = std::vector<TokenId>;

class DefaultModelTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("TESSERA_DEFAULT_MODEL");
    if (path == nullptr) GTEST_SKIP() << "TESSERA_DEFAULT_MODEL is not set";
    file.emplace(GgufFile::open(path));
    types = file->require_ints("tokenizer.ggml.token_type", 0, 6);
    data = {.source = path,
            .model = file->require_string("tokenizer.ggml.model"),
            .pre = file->require_string("tokenizer.ggml.pre"),
            .tokens = file->require_strings("tokenizer.ggml.tokens"),
            .types = types,
            .merges = file->require_strings("tokenizer.ggml.merges"),
            .bos_id = file->optional_int("tokenizer.ggml.bos_token_id", 0, INT64_MAX),
            .eos_id = file->optional_int("tokenizer.ggml.eos_token_id", 0, INT64_MAX),
            .unk_id = file->optional_int("tokenizer.ggml.unknown_token_id", 0, INT64_MAX),
            .add_bos = file->optional_bool("tokenizer.ggml.add_bos_token")};
  }

  std::optional<GgufFile> file;
  std::vector<int64_t> types;
  TokenizerData data;
};

TEST_F(DefaultModelTokenizer, GivesTheGoldenIds) {
  const Tokenizer tokenizer(data);
  const nlohmann::json golden = read_golden("smollm2_ids.json");
  ASSERT_EQ(golden["cases"].size(), 261U);  // 250 strings and 11 prompts
  for (const auto& one : golden["cases"]) {
    const std::string text = one[0];
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), one[1].get<Ids>()) << one[0];
    EXPECT_EQ(tokenizer.encode(text), one.back().get<Ids>()) << one[0];
  }
}

TEST_F(DefaultModelTokenizer, DropsBytesThatHaveNoToken) {
  const Tokenizer tokenizer(data);
  const nlohmann::json golden = read_golden("smollm2_ids.json");
  ASSERT_EQ(golden["dropped_byte_cases"].size(), 5U);
  for (const auto& one : golden["dropped_byte_cases"]) {
    EXPECT_EQ(tokenizer.encode(one[0].get<std::string>()), one[1].get<Ids>()) << one[0];
  }
}

TEST_F(DefaultModelTokenizer, TextComesBackButForDroppedBytes) {
  const Tokenizer tokenizer(data);
  const std::string_view dropped = "\x04\x06\x13\x14\x16\x1D";
  const nlohmann::json golden = read_golden("smollm2_ids.json");
  for (const auto& one : golden["cases"]) {
    std::string text = one[0];
    const std::string back =
        tokenizer.decode(tokenizer.encode(text, {.parse_special = true}), {.render_special = true});
    text.erase(std::remove_if(text.begin(), text.end(),
                              [&](char c) { return dropped.find(c) != std::string_view::npos; }),
               text.end());
    EXPECT_EQ(back, text);
  }
}

TEST_F(DefaultModelTokenizer, KnowsItsSpecialTokens) {
  const Tokenizer tokenizer(data);
  EXPECT_EQ(tokenizer.size(), 49152U);
  EXPECT_EQ(tokenizer.bos(), 1U);
  EXPECT_EQ(tokenizer.eos(), 2U);
  EXPECT_EQ(tokenizer.unk(), 0U);
  EXPECT_EQ(tokenizer.end_ids(), (Ids{0, 2}));  // <|endoftext|>, <|im_end|>
  EXPECT_FALSE(tokenizer.adds_bos());
}

TEST_F(DefaultModelTokenizer, IsBuiltAndEncodesQuickly) {
  double build_s = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start_s = cpu_s();
    const Tokenizer tokenizer(data);
    build_s = std::min(build_s, cpu_s() - start_s);
  }
  RecordProperty("build_us", static_cast<int>(build_s * 1e6));
  const Tokenizer tokenizer(data);
  for (const char c : {'a', ' '}) {
    const std::string text(size_t{1} << 20, c);
    const double start_s = cpu_s();
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_LT(cpu_s() - start_s, 2 * kSlowBuildFactor) << c;
  }
  EXPECT_LT(build_s, 0.040 * kSlowBuildFactor);
}

}  // namespace
}  // namespace tessera
