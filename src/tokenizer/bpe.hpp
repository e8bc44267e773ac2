#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.hpp"

namespace tessera {

/// Byte-level byte-pair encoding (Sennrich et al. 2016, on bytes as in GPT-2): a piece of text
/// begins as one symbol for each byte; the neighbouring pair that stands first in the list of
/// merges, and of equal pairs the leftmost, becomes one symbol, until no pair is in the list.
///
/// A merge whose result is no normal token is skipped. A byte that has no token may still be
/// merged into one; if it is left alone at the end it is dropped.
class Bpe {
 public:
  /// `merges` are validated: Error{kInvalidFile} unless each is two non-empty words with one space
  /// between them. Of equal merges the first counts. `vocabulary` must outlive this object.
  Bpe(const Vocabulary& vocabulary, std::span<const std::string_view> merges,
      const std::string& source);

  struct Options {
    bool ignore_merges = false;  ///< a piece that is a token is that token, merges or not
  };

  /// Working memory that calls reuse; one for each thread.
  struct Scratch {
    std::vector<uint32_t> symbols;
    std::vector<uint32_t> previous;
    std::vector<uint32_t> next;
    std::vector<uint64_t> candidates;
    std::string text;
  };

  /// Appends the ids of `piece` (fewer than 2^32 - 1 bytes). Time O(n log n) in its length.
  void encode(std::string_view piece, const Options& options, Scratch& scratch,
              std::vector<TokenId>& ids) const;

 private:
  struct Merge {
    uint32_t left;
    uint32_t right;
    uint32_t result;
  };

  uint32_t symbol_of(std::string_view text) const;
  void index_merges();
  size_t slot_of(uint32_t left, uint32_t right) const;
  uint32_t find_merge(uint32_t left, uint32_t right) const;
  void merge_all(Scratch& scratch) const;

  const Vocabulary* vocabulary_;
  std::array<uint32_t, 256> byte_symbols_;
  std::vector<Merge> merges_;    // those that can apply, best first
  std::vector<uint32_t> slots_;  // open addressing: pair -> index in merges_
};

}  // namespace tessera
