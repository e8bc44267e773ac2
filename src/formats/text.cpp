#include "formats/text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

#include "base/utf8.hpp"

namespace tessera {
std::string printable(std::string_view text) {
  constexpr size_t kMaxBytes = 100;
  std::string result = "\"";
  while (!text.empty()) {
    if (result.size() > kMaxBytes) {
      fmt::format_to(std::back_inserter(result), "\"... ({} bytes more)", text.size());
      return result;
    }
    const Utf8Unit unit = first_utf8_unit(text);
    const bool whole = unit.kind == Utf8Unit::Kind::kCharacter;
    const auto first = static_cast<unsigned char>(text.front());
    // U+0080 to U+009F are control characters too: terminals obey some of them.
    const bool control = first < 0x20 || first == 0x7F ||
                         (whole && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (!whole || control) {
      fmt::format_to(std::back_inserter(result), "\\x{:02X}", first);
      text.remove_prefix(1);
      continue;
    }
    if (first == '"' || first == '\\') result += '\\';
    result += text.substr(0, unit.n_bytes);
    text.remove_prefix(unit.n_bytes);
  }
  return result + '"';
}

}  // namespace tessera
