#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// What stands at the beginning of a byte string that should be UTF-8.
struct Utf8Unit {
  enum class Kind : uint8_t {
    kCharacter,  ///< one whole, well-formed character
    kInvalid,    ///< a maximal ill-formed part: replaced by one U+FFFD as a whole
    kTruncated,  ///< the string ends inside a character that was well-formed so far
  };
  Kind kind;
  uint8_t n_bytes;  ///< 1..4
};

/// Looks at the first character of `bytes` (not empty). Well-formed is what the Unicode standard,
/// section 3.9, table 3-7 admits: no surrogates, no overlong forms, nothing above U+10FFFF; an
/// ill-formed part is as long as the standard's "substitution of maximal subparts" says.
Utf8Unit first_utf8_unit(std::string_view bytes);

/// True when all of it is well-formed.
bool is_valid_utf8(std::string_view text);

/// Appends code point `c` (not a surrogate, at most U+10FFFF) as UTF-8.
void append_utf8(uint32_t c, std::string& out);

/// Turns bytes that arrive in pieces into UTF-8 text that is whole after every piece: characters
/// are held back until complete, ill-formed parts become U+FFFD. All the output together equals
/// Python's bytes.decode('utf-8', errors='replace') of all the input together.
class Utf8Stream {
 public:
  /// Takes `bytes` and returns every character that is now complete.
  std::string push(std::string_view bytes);

  /// The end of the input: a character that never was completed becomes U+FFFD. The stream is then
  /// as new.
  std::string flush();

 private:
  std::string pending_;  // at most 3 bytes: the beginning of a character
};

/// Whole bytes at once, as Utf8Stream does.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace tessera
