#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

using TokenId = uint32_t;

/// What a token is for. The values are those of GGUF's `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t {
  kUndefined = 0,    ///< treated as normal
  kNormal = 1,       ///< a piece of text
  kUnknown = 2,      ///< stands for text that has no token
  kControl = 3,      ///< steers the model; is no text
  kUserDefined = 4,  ///< text that is always one token, whatever the merges say
  kUnused = 5,       ///< a row of the embedding without meaning
  kByte = 6,         ///< `<0xNN>`: one raw byte
};

/// A tokenizer as a model file describes it. Whoever reads the file fills this in; views and
/// spans need to live only until the Tokenizer is made.
struct TokenizerData {
  std::string_view source = {};  ///< names the file in errors; may be empty
  std::string_view model = {};   ///< `tokenizer.ggml.model`; "gpt2" is byte-level BPE
  std::string_view pre = {};     ///< `tokenizer.ggml.pre`, or what the user chose instead
  /// Id -> text; normal tokens in the byte alphabet.
  std::span<const std::string_view> tokens = {};
  std::span<const int64_t> types = {};            ///< one for each token, or empty: all normal
  std::span<const std::string_view> merges = {};  ///< "left right", best first
  std::optional<int64_t> bos_id = {};
  std::optional<int64_t> eos_id = {};
  std::optional<int64_t> unk_id = {};
  std::optional<int64_t> eot_id = {};      ///< end of a turn
  std::optional<int64_t> eom_id = {};      ///< end of a message, before a tool runs
  std::vector<int64_t> more_end_ids = {};  ///< where the file lists several
  std::optional<bool> add_bos = {};        ///< unset: what is usual for `pre`
  std::optional<bool> add_eos = {};        ///< unset: false
};

/// Strings end to end in one block.
class StringTable {
 public:
  void reserve(size_t n_strings, size_t n_bytes);
  /// The string that is being appended to; `finish()` ends it.
  std::string& tail() { return bytes_; }
  void finish() { ends_.push_back(bytes_.size()); }

  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

/// The tokens of a model: texts, the bytes they stand for, types, and the ids with a role.
/// Immutable; owns all it needs.
class Vocabulary {
 public:
  /// Throws Error{kInvalidFile} naming the key and the id when the data contradict themselves: no
  /// tokens, an empty token, a type out of range or of another count, a special id out of range.
  /// Two tokens may have the same text: the first is the one that text encodes to.
  explicit Vocabulary(const TokenizerData& data);

  size_t size() const { return types_.size(); }
  TokenType type(TokenId id) const { return types_[id]; }
  /// As the file writes it.
  std::string_view text(TokenId id) const { return texts_[id]; }
  /// The bytes that the token adds to a text: a normal token's text taken out of the byte alphabet,
  /// a byte token's byte, every other token's text as it is.
  std::string_view bytes(TokenId id) const { return bytes_[id]; }
  size_t longest_text_bytes() const { return longest_text_bytes_; }

  /// Control, unknown and unused tokens: not part of what the model says.
  bool is_special(TokenId id) const;

  /// The first normal token with this text. Control and user-defined tokens are not found, so that
  /// merging ordinary text can never make one.
  std::optional<TokenId> find_normal(std::string_view text) const { return find(text, true); }
  /// The first token of any other type with this text.
  std::optional<TokenId> find_special(std::string_view text) const { return find(text, false); }

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> unk() const { return unk_; }
  /// Every token that ends an answer, in ascending order: those the file names, and control tokens
  /// whose text is a well-known end mark (files often name only one of several).
  const std::vector<TokenId>& end_ids() const { return end_ids_; }
  bool is_end(TokenId id) const;

 private:
  void read_types(const TokenizerData& data);
  void read_tokens(const TokenizerData& data);
  void read_special_ids(const TokenizerData& data);
  void index_texts();
  bool is_normal(TokenId id) const {
    return types_[id] == TokenType::kNormal || types_[id] == TokenType::kUndefined;
  }
  std::optional<TokenId> find(std::string_view text, bool normal) const;

  std::vector<TokenType> types_;
  StringTable texts_;
  StringTable bytes_;
  size_t longest_text_bytes_ = 0;
  std::vector<TokenId> slots_;  // open addressing, a power of two; kEmptySlot where free
  std::optional<TokenId> bos_, eos_, unk_;
  std::vector<TokenId> end_ids_;
};

}  // namespace tessera
