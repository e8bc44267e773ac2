// The random models that tests of other rooms load.

#include "support/tiny_model.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "base/mapped_file.hpp"
#include "formats/gguf.hpp"
#include "tensor/convert.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

class TinyModelTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) /
                                ("tiny_model_" + std::to_string(getpid()) + ".gguf");
};

constexpr DType kWeightTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                                  DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                  DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                                  DType::kQ6_K};

TEST_F(TinyModelTest, EveryTypeHasTheIntendedSpread) {
  for (const DType dtype : kWeightTypes) {
    SCOPED_TRACE(name(dtype));
    constexpr int64_t kCount = 256 * 512;
    constexpr double kDeviation = 0.0625;
    uint64_t state = 7;
    const auto bytes = random_weights(dtype, kCount, kDeviation, state);
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), row_bytes(dtype, kCount));
    std::vector<float> values(kCount);
    dequantize(dtype, bytes.data(), values.data(), kCount);
    double sum = 0.0;
    double squares = 0.0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += double{value} * value;
    }
    const double mean = sum / kCount;
    const double deviation = std::sqrt(squares / kCount - mean * mean);
    EXPECT_NEAR(mean, 0.0, 0.02 * kDeviation);
    EXPECT_NEAR(deviation, kDeviation, 0.1 * kDeviation);
  }
}

TEST_F(TinyModelTest, WritesWhatTheOptionsSay) {
  TinyModelOptions options;
  options.arch = "qwen2";
  options.dtype = DType::kQ6_K;
  options.d_model = 256;
  options.n_layers = 3;
  options.n_heads = 8;
  options.n_kv_heads = 2;
  options.d_ff = 512;
  options.context = 1000;
  options.tied = false;
  options.rope_scaling = "yarn";
  options.rope_factors.assign(16, 2.0F);
  options.pretokenizer = "qwen2";
  write_tiny_model(path_, options);
  const GgufFile file = GgufFile::open(path_);
  EXPECT_EQ(file.require_string("general.architecture"), "qwen2");
  EXPECT_EQ(file.require_int("qwen2.block_count", 1, 100), 3);
  EXPECT_EQ(file.require_int("qwen2.attention.head_count_kv", 1, 100), 2);
  EXPECT_EQ(file.require_int("qwen2.rope.scaling.original_context_length", 1, 1000), 250);
  EXPECT_EQ(file.require_string("tokenizer.ggml.pre"), "qwen2");
  EXPECT_EQ(file.tensors().size(), 3U + 3U * 12U + 1U);
  EXPECT_EQ(file.require_tensor("blk.2.ffn_down.weight", {256, 512}).dtype, DType::kQ6_K);
  EXPECT_EQ(file.require_tensor("blk.2.attn_k.bias", {64}).dtype, DType::kF32);
  EXPECT_EQ(file.require_tensor("rope_freqs.weight", {16}).dtype, DType::kF32);
  const auto n_tokens = static_cast<int64_t>(file.require_strings("tokenizer.ggml.tokens").size());
  EXPECT_EQ(file.require_int("qwen2.vocab_size", 1, 1000), n_tokens);
  file.require_tensor("output.weight", {n_tokens, 256});
}

TEST_F(TinyModelTest, VocabularyIsConsistent) {
  const TinyVocabulary vocabulary = tiny_vocabulary();
  ASSERT_EQ(vocabulary.tokens.size(), vocabulary.types.size());
  const std::set<std::string> tokens(vocabulary.tokens.begin(), vocabulary.tokens.end());
  EXPECT_EQ(tokens.size(), vocabulary.tokens.size()) << "a token comes twice";
  EXPECT_EQ(tokens.size(), 3U + 256U + vocabulary.merges.size());
  for (const std::string& merge : vocabulary.merges) {
    const size_t space = merge.find(' ');
    ASSERT_NE(space, std::string::npos);
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    EXPECT_TRUE(tokens.contains(left) && tokens.contains(right) && tokens.contains(left + right))
        << merge;
  }
}

TEST_F(TinyModelTest, DependsOnTheSeedAlone) {
  const auto bytes_of = [&](uint64_t seed) {
    TinyModelOptions options;
    options.seed = seed;
    write_tiny_model(path_, options);
    const MappedFile map = MappedFile::open(path_);
    return std::vector<std::byte>(map.bytes().begin(), map.bytes().end());
  };
  const auto first = bytes_of(1);
  EXPECT_EQ(first, bytes_of(1));
  EXPECT_NE(first, bytes_of(2));
}

TEST_F(TinyModelTest, RefusesOptionsThatDoNotFit) {
  TinyModelOptions options;
  options.dtype = DType::kQ4_K;  // d_model 64
  EXPECT_THROW(write_tiny_model(path_, options), Error);
  options = {};
  options.n_kv_heads = 3;
  EXPECT_THROW(write_tiny_model(path_, options), Error);
  options = {};
  options.arch = "gpt2";
  EXPECT_THROW(write_tiny_model(path_, options), Error);
}

}  // namespace
}  // namespace tessera
