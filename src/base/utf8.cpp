#include "base/utf8.hpp"

#include "base/check.hpp"

namespace tessera {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What a lead byte asks for: how long the character is, and the range of its second byte, which
// rules out overlong forms, surrogates and what lies above U+10FFFF.
struct Lead {
  uint8_t n_bytes;  // 0: no character begins with this byte
  uint8_t second_min;
  uint8_t second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Appends the characters of `bytes` to `out` and returns how many bytes they took: all of them, or
// all but a truncated character at the end.
size_t append_characters(std::string_view bytes, std::string& out) {
  size_t position = 0;
  while (position < bytes.size()) {
    const Utf8Unit unit = first_utf8_unit(bytes.substr(position));
    if (unit.kind == Utf8Unit::Kind::kTruncated) break;
    out += unit.kind == Utf8Unit::Kind::kCharacter ? bytes.substr(position, unit.n_bytes)
                                                   : kReplacement;
    position += unit.n_bytes;
  }
  return position;
}

}  // namespace

Utf8Unit first_utf8_unit(std::string_view bytes) {
  TESSERA_DCHECK(!bytes.empty());
  const Lead lead = lead_of(static_cast<uint8_t>(bytes[0]));
  if (lead.n_bytes == 0) return {Utf8Unit::Kind::kInvalid, 1};
  for (uint8_t i = 1; i < lead.n_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Unit::Kind::kTruncated, i};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : uint8_t{0x80};
    const uint8_t max = i == 1 ? lead.second_max : uint8_t{0xBF};
    if (byte < min || byte > max) return {Utf8Unit::Kind::kInvalid, i};
  }
  return {Utf8Unit::Kind::kCharacter, lead.n_bytes};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Unit unit = first_utf8_unit(text);
    if (unit.kind != Utf8Unit::Kind::kCharacter) return false;
    text.remove_prefix(unit.n_bytes);
  }
  return true;
}

void append_utf8(uint32_t c, std::string& out) {
  TESSERA_DCHECK(c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF));
  const auto continuation = [c](int shift) {
    return static_cast<char>(0x80 | ((c >> shift) & 0x3F));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += continuation(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += continuation(6);
    out += continuation(0);
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += continuation(12);
    out += continuation(6);
    out += continuation(0);
  }
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  pending_.erase(0, append_characters(pending_, out));
  return out;
}

std::string Utf8Stream::flush() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacement);
}

std::string replace_invalid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.push(bytes);
  out += stream.flush();
  return out;
}

}  // namespace tessera
