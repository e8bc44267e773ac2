// Any vocabulary, any text: making the tokenizer either works or throws Error, and what it then
// makes of a text keeps its promises.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "tokenizer/byte_alphabet.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {
namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

// Takes the input apart from its beginning; zeros when it has run out.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return value;
  }
  std::string_view string(size_t n_bytes) {
    const std::string_view value = bytes_.substr(0, n_bytes);
    bytes_.remove_prefix(value.size());
    return value;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

struct Settings {
  bool all_bytes;
  bool with_types;
  bool parse_special;
  bool as_alphabet;
};

std::vector<std::string> read_words(Input& input, bool as_alphabet) {
  std::vector<std::string> words(input.byte() % 32);
  for (std::string& word : words) {
    const std::string_view raw = input.string(input.byte() % 16);
    if (as_alphabet) {
      append_in_byte_alphabet(raw, word);
    } else {
      word = raw;
    }
  }
  return words;
}

void check(const Tokenizer& tokenizer, std::string_view text, const Settings& settings) {
  const EncodeOptions options{
      .bos = AddToken::kNever, .eos = AddToken::kNever, .parse_special = settings.parse_special};
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  const std::string bytes = tokenizer.decode(ids, {.render_special = true});
  if (settings.all_bytes) require(bytes == text);
  require(ids.size() <= text.size());
  Utf8Stream stream;
  std::string streamed;
  for (const TokenId id : ids) {
    if (!settings.parse_special) require(!tokenizer.vocabulary().is_special(id));
    streamed += stream.push(tokenizer.token_to_bytes(id, {.render_special = true}));
  }
  streamed += stream.flush();
  require(streamed == replace_invalid_utf8(bytes));
  tokenizer.encode(text);  // BOS and EOS as the data say
}

void run(std::string_view bytes) {
  constexpr std::string_view kLabels[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"};
  Input input(bytes);
  const uint8_t flags = input.byte();
  const Settings settings{.all_bytes = (flags & 1) != 0,
                          .with_types = (flags & 2) != 0,
                          .parse_special = (flags & 4) != 0,
                          .as_alphabet = (flags & 8) != 0};
  std::vector<std::string> tokens;
  if (settings.all_bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      tokens.emplace_back(byte_character(static_cast<uint8_t>(byte)));
    }
  }
  const std::vector<int64_t> byte_types(tokens.size(), 1);
  TokenizerData data{.source = "fuzz", .model = "gpt2", .pre = kLabels[input.byte() % 5]};
  std::vector<std::string> more = read_words(input, settings.as_alphabet);
  tokens.insert(tokens.end(), more.begin(), more.end());
  std::vector<std::string> merges;
  for (const std::string& merge : read_words(input, settings.as_alphabet)) {
    // Half of each: a merge written by the fuzzer, or one of two tokens.
    if (merge.size() != 2 || tokens.empty()) {
      merges.push_back(merge);
    } else {
      merges.push_back(tokens[static_cast<uint8_t>(merge[0]) % tokens.size()] + " " +
                       tokens[static_cast<uint8_t>(merge[1]) % tokens.size()]);
    }
  }
  std::vector<int64_t> types;
  if (settings.with_types) {
    types = byte_types;
    for (size_t i = 0; i < more.size(); ++i) types.push_back(input.byte() % 8);
  }
  const auto id = [&]() -> std::optional<int64_t> {
    const auto value = static_cast<int8_t>(input.byte());
    if (value % 2 == 0) return std::nullopt;
    return value;
  };
  data.bos_id = id();
  data.eos_id = id();
  data.eot_id = id();
  if ((flags & 16) != 0) data.add_bos = (flags & 32) != 0;
  if ((flags & 64) != 0) data.add_eos = (flags & 128) != 0;
  const std::vector<std::string_view> token_views(tokens.begin(), tokens.end());
  const std::vector<std::string_view> merge_views(merges.begin(), merges.end());
  data.tokens = token_views;
  data.types = types;
  data.merges = merge_views;
  std::optional<Tokenizer> tokenizer;
  try {
    tokenizer.emplace(data);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kInvalidFile);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return;
  }
  check(*tokenizer, input.rest(), settings);
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
