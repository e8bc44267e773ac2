#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// Byte-level BPE writes its tokens in an alphabet of 256 printable characters, one for each byte,
// so that a vocabulary is readable text: bytes that are printable in Latin-1 stand for themselves,
// the others, in order, for U+0100, U+0101, ... (a space is U+0120). Source: the encoder published
// with GPT-2 (Radford et al. 2019).

/// The character that stands for `byte`, as UTF-8 (1 or 2 bytes).
std::string_view byte_character(uint8_t byte);

/// `bytes` written in the alphabet.
void append_in_byte_alphabet(std::string_view bytes, std::string& out);

/// The bytes that `text` stands for. Whatever in `text` is not of the alphabet stands for itself.
void append_from_byte_alphabet(std::string_view text, std::string& out);

}  // namespace tessera
