#include "tokenizer/pretokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <span>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tessera {
namespace {

// As published with the models (GPT-2's encoder; the tokenizer.json of Llama 3, Qwen 2, SmolLM).
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOneDigit = R"(\p{N})";
constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = R"([0-9][0-9][0-9])";

constexpr std::array kGpt2Patterns = {kGpt2};
constexpr std::array kLlama3Patterns = {kLlama3};
constexpr std::array kQwen2Patterns = {kQwen2};
constexpr std::array kSmollmPatterns = {kOneDigit, kGpt2};
constexpr std::array kDefaultPatterns = {kPunctuation, kGpt2, kDigits, kThreeDigits};

struct LabelSpec {
  std::string_view label;
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;
  bool adds_bos = false;
};

constexpr LabelSpec kLabels[] = {
    {.label = "default", .patterns = kDefaultPatterns},
    {.label = "gpt-2", .patterns = kGpt2Patterns},
    {.label = "mpt", .patterns = kGpt2Patterns},
    {.label = "olmo", .patterns = kGpt2Patterns},
    {.label = "phi-2", .patterns = kGpt2Patterns},
    {.label = "smollm", .patterns = kSmollmPatterns},
    {.label = "codeshell", .patterns = kSmollmPatterns},
    {.label = "command-r", .patterns = kSmollmPatterns},
    {.label = "refact", .patterns = kSmollmPatterns},
    {.label = "starcoder", .patterns = kSmollmPatterns},
    {.label = "llama-bpe", .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.label = "llama-v3", .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.label = "llama3", .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.label = "falcon3", .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.label = "lfm2", .patterns = kLlama3Patterns, .ignore_merges = true, .adds_bos = true},
    {.label = "qwen2", .patterns = kQwen2Patterns},
    {.label = "deepseek-r1-qwen", .patterns = kQwen2Patterns},
    {.label = "stablelm2", .patterns = kQwen2Patterns},
};

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using Code = std::unique_ptr<pcre2_code, CodeDeleter>;
using MatchData = std::unique_ptr<pcre2_match_data, MatchDataDeleter>;
using MatchContext = std::unique_ptr<pcre2_match_context, MatchContextDeleter>;

// The patterns mean by \s the Unicode property White_Space. PCRE2 also counts U+180E, which lost
// the property in Unicode 6.3, so \s and \S are spelled out.
std::string with_unicode_white_space(std::string_view pattern) {
  constexpr std::string_view kWhiteSpace = R"(\p{Z}\t-\r\x{85})";
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\') {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' && in_class) {
      out += kWhiteSpace;
    } else if (escaped == 's' || escaped == 'S') {
      out += escaped == 's' ? "[" : "[^";
      out += kWhiteSpace;
      out += ']';
    } else {
      out += c;
      out += escaped;
    }
  }
  return out;
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[128] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

Code compile(std::string_view published) {
  const std::string pattern = with_unicode_white_space(published);
  int error = 0;
  PCRE2_SIZE at = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
  if (!code) {
    fail(ErrorKind::kUnsupported, "PCRE2", "cannot compile '{}': {} at {}", pattern,
         pcre2_message(error), at);
  }
  // Where this PCRE2 cannot compile to machine code, the interpreter gives the same matches.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// What one call of split() needs besides the patterns.
struct MatchState {
  explicit MatchState(size_t n_bytes)
      : context(pcre2_match_context_create(nullptr)), data(pcre2_match_data_create(1, nullptr)) {
    if (!context || !data) throw std::bad_alloc();
    // The patterns stay far below these limits (none goes back over more than one run of white
    // space), so that a mistake in one would be an error and not a hang.
    const uint64_t limit = 1'000'000 + uint64_t{16} * n_bytes;
    pcre2_set_match_limit(context.get(),
                          static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX)));
    pcre2_set_depth_limit(context.get(), 1000);
  }
  MatchContext context;
  MatchData data;
};

}  // namespace

struct Pretokenizer::Impl {
  const LabelSpec* spec;
  std::vector<Code> patterns;

  void cut(const Code& code, std::string_view text, MatchState& state,
           std::vector<std::string_view>& pieces) const;
  void cut_characters(std::string_view text, MatchState& state,
                      std::vector<std::string_view>& pieces) const;
};

Pretokenizer::Pretokenizer(std::string_view label, const std::string& source) {
  const auto* spec = std::find_if(std::begin(kLabels), std::end(kLabels),
                                  [&](const LabelSpec& known) { return known.label == label; });
  if (spec == std::end(kLabels)) {
    fail(ErrorKind::kUnsupported, source,
         "tokenizer.ggml.pre: expected a known pre-tokenizer, got {}; if one of these cuts text as "
         "the model was trained with, choose it with --pretokenizer: {}",
         label.empty() ? "none" : fmt::format("{:?}", label.substr(0, 64)), known_labels());
  }
  impl_ = std::make_unique<Impl>();
  impl_->spec = spec;
  for (const std::string_view pattern : spec->patterns) {
    impl_->patterns.push_back(compile(pattern));
  }
}

Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

bool Pretokenizer::ignore_merges() const {
  return impl_->spec->ignore_merges;
}
bool Pretokenizer::adds_bos() const {
  return impl_->spec->adds_bos;
}

std::string Pretokenizer::known_labels() {
  std::string labels;
  for (const LabelSpec& spec : kLabels) {
    if (!labels.empty()) labels += ", ";
    labels += spec.label;
  }
  return labels;
}

void Pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  if (text.empty()) return;
  MatchState state(text.size());
  size_t begin = 0;
  bool valid = true;
  const auto end_run = [&](size_t end) {
    const std::string_view run = text.substr(begin, end - begin);
    if (!run.empty() && valid) impl_->cut_characters(run, state, pieces);
    if (!run.empty() && !valid) pieces.push_back(run);
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    const bool unit_valid = unit.kind == Utf8Unit::Kind::kCharacter;
    if (unit_valid != valid) {
      end_run(at);
      valid = unit_valid;
    }
    at += unit.n_bytes;
  }
  end_run(text.size());
}

// `text` is well-formed UTF-8.
void Pretokenizer::Impl::cut_characters(std::string_view text, MatchState& state,
                                        std::vector<std::string_view>& pieces) const {
  std::vector<std::string_view> current = {text};
  std::vector<std::string_view> finer;
  for (const Code& code : patterns) {
    finer.clear();
    for (const std::string_view piece : current) cut(code, piece, state, finer);
    current.swap(finer);
  }
  pieces.insert(pieces.end(), current.begin(), current.end());
}

void Pretokenizer::Impl::cut(const Code& code, std::string_view text, MatchState& state,
                             std::vector<std::string_view>& pieces) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t done = 0;
  while (done < text.size()) {
    const int result = pcre2_match(code.get(), subject, text.size(), done, PCRE2_NO_UTF_CHECK,
                                   state.data.get(), state.context.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      fail(ErrorKind::kUnsupported, "pre-tokenizer", "cannot cut a text of {} bytes: {}",
           text.size(), pcre2_message(result));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data.get());
    if (range[0] > done) pieces.push_back(text.substr(done, range[0] - done));
    pieces.push_back(text.substr(range[0], range[1] - range[0]));
    done = range[1];
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
}

}  // namespace tessera
