#include "tokenizer/byte_alphabet.hpp"

#include <array>

#include "base/utf8.hpp"

namespace tessera {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// The alphabet ends at U+0143: 256 bytes, 188 of which stand for themselves.
constexpr uint32_t kFirstUnusedCharacter = 0x100 + 68;

struct Alphabet {
  std::array<std::string, 256> character_of_byte;
  std::array<int16_t, kFirstUnusedCharacter> byte_of_character;  // -1: not of the alphabet

  Alphabet() {
    byte_of_character.fill(-1);
    uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const uint32_t character = stands_for_itself(byte) ? byte : next++;
      append_utf8(character, character_of_byte[byte]);
      byte_of_character[character] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_character(uint8_t byte) {
  return alphabet().character_of_byte[byte];
}

void append_in_byte_alphabet(std::string_view bytes, std::string& out) {
  const Alphabet& table = alphabet();
  for (const char byte : bytes) out += table.character_of_byte[static_cast<uint8_t>(byte)];
}

void append_from_byte_alphabet(std::string_view text, std::string& out) {
  const Alphabet& table = alphabet();
  while (!text.empty()) {
    const Utf8Unit unit = first_utf8_unit(text);
    int byte = -1;
    if (unit.kind == Utf8Unit::Kind::kCharacter && unit.n_bytes <= 2) {
      uint32_t character = static_cast<uint8_t>(text[0]);
      if (unit.n_bytes == 2) {
        character = ((character & 0x1F) << 6) | (static_cast<uint8_t>(text[1]) & 0x3F);
      }
      if (character < kFirstUnusedCharacter) byte = table.byte_of_character[character];
    }
    if (byte >= 0) {
      out += static_cast<char>(byte);
    } else {
      out += text.substr(0, unit.n_bytes);
    }
    text.remove_prefix(unit.n_bytes);
  }
}

}  // namespace tessera
