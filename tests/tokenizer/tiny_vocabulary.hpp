#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tokenizer/byte_alphabet.hpp"
#include "tokenizer/vocabulary.hpp"

namespace tessera {

/// A vocabulary that a test writes down, and the TokenizerData that views it.
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<std::string> merges;
  TokenizerData fields{.model = "gpt2", .pre = "gpt-2"};  // everything but the three lists

  TokenId add(std::string token, TokenType type = TokenType::kNormal) {
    tokens.push_back(std::move(token));
    types.push_back(static_cast<int64_t>(type));
    return static_cast<TokenId>(tokens.size() - 1);
  }

  /// One token for each byte: id 0 is byte 0 and so on.
  void add_all_bytes() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      add(std::string(byte_character(static_cast<uint8_t>(byte))));
    }
  }

  /// A token and the merge that makes it.
  TokenId add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }

  /// Valid until this object changes.
  TokenizerData data() {
    token_views_.assign(tokens.begin(), tokens.end());
    merge_views_.assign(merges.begin(), merges.end());
    TokenizerData data = fields;
    data.tokens = token_views_;
    data.types = types;
    data.merges = merge_views_;
    return data;
  }

 private:
  std::vector<std::string_view> token_views_;
  std::vector<std::string_view> merge_views_;
};

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(TESSERA_TEST_DATA "/data/tokenizer/" + name);
  return nlohmann::json::parse(file);
}

/// Seconds of processor time so far: unlike the clock on the wall, not disturbed by other programs.
inline double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// How much longer than in a plain release build something may take in this one.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kSlowBuildFactor = 1;
#else
constexpr double kSlowBuildFactor = 20;
#endif

/// Runs `action` and expects an Error of `kind` whose message is one line and contains every one of
/// `parts`.
template <typename Action>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace tessera
