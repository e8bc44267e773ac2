#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.hpp"
#include "tokenizer/pretokenizer.hpp"
#include "tokenizer/special_matcher.hpp"
#include "tokenizer/vocabulary.hpp"

namespace tessera {

/// Whether BOS or EOS is put around a text.
enum class AddToken : uint8_t {
  kAsFile,  ///< as the model file says
  kNever,
  kAlways,  ///< Error{kInvalidArgument} when the vocabulary has no such token
};

struct EncodeOptions {
  AddToken bos = AddToken::kAsFile;
  AddToken eos = AddToken::kAsFile;
  /// Text that reads like a control token becomes that token. Leave it off for text from outside:
  /// then no text can make a control token.
  bool parse_special = false;
};

struct DecodeOptions {
  bool render_special = false;  ///< control, unknown and unused tokens as text; else left out
};

/// Text to token ids and back. Immutable: may be used from several threads at once.
class Tokenizer {
 public:
  /// Copies what it needs of `data`. Throws Error{kUnsupported} for another kind of tokenizer than
  /// byte-level BPE or an unknown pre-tokenizer, Error{kInvalidFile} for contradictory data.
  explicit Tokenizer(const TokenizerData& data);

  /// The ids of `text` (any bytes, fewer than 2^32 - 1): user-defined tokens, and control tokens
  /// if asked for, are taken out from left to right, the longest first; the rest is cut into
  /// pieces and merged. Bytes for which the vocabulary has no token are dropped. BOS is not put
  /// before a text that begins with it already, nor EOS after one that ends with it.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The bytes of `ids`; not always UTF-8 (Utf8Stream makes it so). Throws Error{kInvalidArgument}
  /// for an id that is not of the vocabulary.
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;

  /// The bytes of one token as decode() gives them; valid as long as this object.
  std::string_view token_to_bytes(TokenId id, const DecodeOptions& options = {}) const;

  size_t size() const { return vocabulary_->size(); }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::optional<TokenId> bos() const { return vocabulary_->bos(); }
  std::optional<TokenId> eos() const { return vocabulary_->eos(); }
  std::optional<TokenId> unk() const { return vocabulary_->unk(); }
  const std::vector<TokenId>& end_ids() const { return vocabulary_->end_ids(); }
  /// Whether `id` ends an answer. False for ids that are not of the vocabulary.
  bool is_end(TokenId id) const { return vocabulary_->is_end(id); }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }

 private:
  std::unique_ptr<const Vocabulary> vocabulary_;  // its address stays: Bpe refers to it
  Pretokenizer pretokenizer_;
  Bpe bpe_;
  SpecialMatcher user_defined_;
  SpecialMatcher all_special_;  // user-defined, control and unknown
  bool adds_bos_;
  bool adds_eos_;
};

}  // namespace tessera
