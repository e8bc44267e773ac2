#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Cuts text into the pieces within which merges happen ("pre-tokenisation"). A model file names
/// the way to cut only by a label, `tokenizer.ggml.pre`; the patterns are in a table here.
///
/// A label has one or more patterns. The first cuts the text, each further one cuts the pieces so
/// far; matches are pieces and so is what lies between two matches. Pieces are views of the text,
/// in order, and together they are the whole text.
///
/// Bytes that are not UTF-8 are pieces of their own (one for each run of them), and the text on
/// either side is cut as if it stood alone: the patterns see only whole characters.
class Pretokenizer {
 public:
  /// Throws Error{kUnsupported} naming the label, the known labels and the way out.
  Pretokenizer(std::string_view label, const std::string& source);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  /// Appends the pieces of `text`. Linear in its length. May be called from several threads.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

  /// Models with this label use a token for a whole piece even where the merges would not make it.
  bool ignore_merges() const;
  /// Whether models with this label begin with BOS when their file does not say.
  bool adds_bos() const;

  /// All labels, for messages.
  static std::string known_labels();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
