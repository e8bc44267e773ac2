#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.hpp"

namespace tessera {

/// Finds tokens that are matched as plain text (control and user-defined tokens): from left to
/// right, at each place the longest. Linear in the text, however many and however long the tokens.
class SpecialMatcher {
 public:
  /// Of two equal texts the one added first counts.
  void add(std::string_view text, TokenId id);
  /// After the last add(), before find_all().
  void finish();

  struct Match {
    size_t begin;  ///< bytes from the beginning of the text
    size_t n_bytes;
    TokenId id;
  };
  /// All matches, in order; they do not overlap.
  std::vector<Match> find_all(std::string_view text) const;

 private:
  // An Aho-Corasick automaton of the reversed texts. Run from the end of the text to its beginning,
  // it knows at every position the longest token that begins there.
  struct Node {
    uint32_t first_child = 0;
    uint32_t next_sibling = 0;
    uint32_t fallback = 0;   // the longest proper suffix that is a node
    uint32_t n_matched = 0;  // bytes of the longest token that is a suffix of this node; 0: none
    TokenId id = 0;          // that token
    uint8_t byte = 0;
  };
  uint32_t child(uint32_t node, uint8_t byte) const;
  uint32_t step(uint32_t node, uint8_t byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);  // [0] is the root
  std::array<uint32_t, 256> root_children_{};
};

}  // namespace tessera
