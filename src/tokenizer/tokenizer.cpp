#include "tokenizer/tokenizer.hpp"

#include "base/error.hpp"

namespace tessera {
namespace {

std::unique_ptr<const Vocabulary> make_vocabulary(const TokenizerData& data) {
  if (data.model != "gpt2") {
    fail(
        ErrorKind::kUnsupported, std::string(data.source),
        "tokenizer.ggml.model: expected gpt2 (byte-level BPE), got {}; models with another kind of "
        "tokenizer cannot be used yet",
        data.model.empty() ? "none" : fmt::format("{:?}", data.model.substr(0, 64)));
  }
  return std::make_unique<const Vocabulary>(data);
}

// BOS or EOS, if it is to be put; nullopt otherwise.
std::optional<TokenId> token_to_put(AddToken choice, bool file_says, std::optional<TokenId> id,
                                    const char* name) {
  if (choice == AddToken::kNever || (choice == AddToken::kAsFile && !file_says)) {
    return std::nullopt;
  }
  if (!id) {
    fail(ErrorKind::kInvalidArgument, "",
         "expected a vocabulary with {}, got one without; do not "
         "ask for it",
         name);
  }
  return id;
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerData& data)
    : vocabulary_(make_vocabulary(data)),
      pretokenizer_(data.pre, std::string(data.source)),
      bpe_(*vocabulary_, data.merges, std::string(data.source)),
      adds_bos_(data.add_bos.value_or(pretokenizer_.adds_bos() && bos().has_value())),
      adds_eos_(data.add_eos.value_or(false)) {
  if ((adds_bos_ && !bos()) || (adds_eos_ && !eos())) {
    const char* name = adds_bos_ && !bos() ? "bos" : "eos";
    fail(ErrorKind::kInvalidFile, std::string(data.source),
         "tokenizer.ggml.add_{}_token is true, but tokenizer.ggml.{}_token_id is missing", name,
         name);
  }
  for (TokenId id = 0; id < size(); ++id) {
    const TokenType type = vocabulary_->type(id);
    if (type == TokenType::kUserDefined) user_defined_.add(vocabulary_->text(id), id);
    if (type == TokenType::kUserDefined || type == TokenType::kControl ||
        type == TokenType::kUnknown) {
      all_special_.add(vocabulary_->text(id), id);
    }
  }
  user_defined_.finish();
  all_special_.finish();
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() >= UINT32_MAX) {
    fail(ErrorKind::kInvalidArgument, "", "expected a text below 4 GiB, got {} bytes", text.size());
  }
  const auto bos_to_put = token_to_put(options.bos, adds_bos_, bos(), "BOS");
  const auto eos_to_put = token_to_put(options.eos, adds_eos_, eos(), "EOS");

  std::vector<TokenId> ids;
  if (bos_to_put) ids.push_back(*bos_to_put);
  Bpe::Scratch scratch;
  std::vector<std::string_view> pieces;
  const auto encode_plain = [&](std::string_view plain) {
    pieces.clear();
    pretokenizer_.split(plain, pieces);
    for (const std::string_view piece : pieces) {
      bpe_.encode(piece, {.ignore_merges = pretokenizer_.ignore_merges()}, scratch, ids);
    }
  };
  const SpecialMatcher& matcher = options.parse_special ? all_special_ : user_defined_;
  size_t done = 0;
  for (const SpecialMatcher::Match& match : matcher.find_all(text)) {
    encode_plain(text.substr(done, match.begin - done));
    ids.push_back(match.id);
    done = match.begin + match.n_bytes;
  }
  encode_plain(text.substr(done));

  if (bos_to_put && ids.size() > 1 && ids[1] == *bos_to_put) ids.erase(ids.begin());
  if (eos_to_put && (ids.empty() || ids.back() != *eos_to_put)) ids.push_back(*eos_to_put);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_to_bytes(id, options);
  return bytes;
}

std::string_view Tokenizer::token_to_bytes(TokenId id, const DecodeOptions& options) const {
  if (id >= size()) {
    fail(ErrorKind::kInvalidArgument, "", "expected a token id below {}, got {}", size(), id);
  }
  if (!options.render_special && vocabulary_->is_special(id)) return {};
  return vocabulary_->bytes(id);
}

}  // namespace tessera
