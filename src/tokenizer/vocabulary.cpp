#include "tokenizer/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/error.hpp"
#include "tokenizer/byte_alphabet.hpp"

namespace tessera {
namespace {

constexpr TokenId kEmptySlot = UINT32_MAX;

// Ids above this are the BPE's names for bytes that have no token.
constexpr size_t kMaxTokens = size_t{1} << 31;

constexpr std::array<std::string_view, 9> kEndMarks = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",
    "<|end|>",       "<end_of_turn>",   "<|endofturn|>", "</s>"};

// The byte that a byte token's text, `<0xNN>`, names; -1 when it is written otherwise.
int named_byte(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]);
  const size_t low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high * 16 + low);
}

}  // namespace

void StringTable::reserve(size_t n_strings, size_t n_bytes) {
  ends_.reserve(n_strings);
  bytes_.reserve(n_bytes);
}

Vocabulary::Vocabulary(const TokenizerData& data) {
  read_types(data);
  read_tokens(data);
  read_special_ids(data);
  index_texts();
}

void Vocabulary::read_types(const TokenizerData& data) {
  const std::string where(data.source);
  const size_t n_tokens = data.tokens.size();
  if (n_tokens == 0 || n_tokens > kMaxTokens) {
    fail(ErrorKind::kInvalidFile, where,
         "tokenizer.ggml.tokens: expected 1 to {} tokens, got {}; the file is damaged or holds no "
         "vocabulary",
         kMaxTokens, n_tokens);
  }
  if (!data.types.empty() && data.types.size() != n_tokens) {
    fail(ErrorKind::kInvalidFile, where,
         "tokenizer.ggml.token_type: expected {} entries, one for each token, got {}", n_tokens,
         data.types.size());
  }
  types_.assign(n_tokens, TokenType::kNormal);
  for (size_t id = 0; id < data.types.size(); ++id) {
    const int64_t type = data.types[id];
    if (type < 0 || type > static_cast<int64_t>(TokenType::kByte)) {
      fail(ErrorKind::kInvalidFile, where,
           "tokenizer.ggml.token_type: expected a type from 0 to 6 for token {}, got {}", id, type);
    }
    types_[id] = static_cast<TokenType>(type);
  }
}

void Vocabulary::read_tokens(const TokenizerData& data) {
  const std::string where(data.source);
  size_t n_bytes = 0;
  for (const std::string_view text : data.tokens) n_bytes += text.size();
  texts_.reserve(size(), n_bytes);
  bytes_.reserve(size(), n_bytes);
  for (TokenId id = 0; id < size(); ++id) {
    const std::string_view text = data.tokens[id];
    if (text.empty()) {
      fail(ErrorKind::kInvalidFile, where, "tokenizer.ggml.tokens: token {} is empty", id);
    }
    longest_text_bytes_ = std::max(longest_text_bytes_, text.size());
    texts_.tail() += text;
    texts_.finish();
    if (is_normal(id)) {
      append_from_byte_alphabet(text, bytes_.tail());
    } else if (types_[id] == TokenType::kByte) {
      const int byte = named_byte(text);
      if (byte < 0) {
        fail(ErrorKind::kInvalidFile, where,
             "tokenizer.ggml.tokens: expected byte token {} to read <0xNN>, got {:?}", id,
             text.substr(0, 64));
      }
      bytes_.tail() += static_cast<char>(byte);
    } else {
      bytes_.tail() += text;
    }
    bytes_.finish();
  }
}

void Vocabulary::read_special_ids(const TokenizerData& data) {
  const auto checked = [&](std::optional<int64_t> id, const char* key) -> std::optional<TokenId> {
    if (!id) return std::nullopt;
    if (*id < 0 || static_cast<uint64_t>(*id) >= size()) {
      fail(ErrorKind::kInvalidFile, std::string(data.source),
           "tokenizer.ggml.{}: expected an id below {}, the number of tokens, got {}", key, size(),
           *id);
    }
    return static_cast<TokenId>(*id);
  };
  bos_ = checked(data.bos_id, "bos_token_id");
  eos_ = checked(data.eos_id, "eos_token_id");
  unk_ = checked(data.unk_id, "unknown_token_id");
  if (eos_) end_ids_.push_back(*eos_);
  if (const auto id = checked(data.eot_id, "eot_token_id")) end_ids_.push_back(*id);
  if (const auto id = checked(data.eom_id, "eom_token_id")) end_ids_.push_back(*id);
  for (const int64_t id : data.more_end_ids) {
    end_ids_.push_back(*checked(id, "eos_token_ids"));
  }
  for (TokenId id = 0; id < size(); ++id) {
    if (types_[id] == TokenType::kControl &&
        std::find(kEndMarks.begin(), kEndMarks.end(), text(id)) != kEndMarks.end()) {
      end_ids_.push_back(id);
    }
  }
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
}

void Vocabulary::index_texts() {
  slots_.assign(std::bit_ceil(2 * size()), kEmptySlot);
  const size_t mask = slots_.size() - 1;
  for (TokenId id = 0; id < size(); ++id) {
    size_t slot = std::hash<std::string_view>{}(text(id)) & mask;
    while (slots_[slot] != kEmptySlot &&
           (text(slots_[slot]) != text(id) || is_normal(slots_[slot]) != is_normal(id))) {
      slot = (slot + 1) & mask;
    }
    if (slots_[slot] == kEmptySlot) slots_[slot] = id;
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view wanted, bool normal) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = std::hash<std::string_view>{}(wanted)&mask; slots_[slot] != kEmptySlot;
       slot = (slot + 1) & mask) {
    const TokenId id = slots_[slot];
    if (text(id) == wanted && is_normal(id) == normal) return id;
  }
  return std::nullopt;
}

bool Vocabulary::is_special(TokenId id) const {
  return types_[id] == TokenType::kControl || types_[id] == TokenType::kUnknown ||
         types_[id] == TokenType::kUnused;
}

bool Vocabulary::is_end(TokenId id) const {
  return std::binary_search(end_ids_.begin(), end_ids_.end(), id);
}

}  // namespace tessera
