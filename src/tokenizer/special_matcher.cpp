#include "tokenizer/special_matcher.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace tessera {

uint32_t SpecialMatcher::child(uint32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  uint32_t at = nodes_[node].first_child;
  while (at != 0 && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
  return at;
}

void SpecialMatcher::add(std::string_view text, TokenId id) {
  uint32_t node = 0;
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    uint32_t next = child(node, byte);
    if (next == 0) {
      if (nodes_.size() >= UINT32_MAX) {
        fail(ErrorKind::kUnsupported, "", "control and user-defined tokens of 4 GiB and more");
      }
      next = static_cast<uint32_t>(nodes_.size());
      Node fresh;
      fresh.byte = byte;
      fresh.next_sibling = nodes_[node].first_child;
      nodes_.push_back(fresh);
      nodes_[node].first_child = next;
      if (node == 0) root_children_[byte] = next;
    }
    node = next;
  }
  if (node != 0 && nodes_[node].n_matched == 0) {
    nodes_[node].n_matched = static_cast<uint32_t>(text.size());
    nodes_[node].id = id;
  }
}

void SpecialMatcher::finish() {
  // Breadth first: a node's fallback is shorter than the node, so it is done before it.
  std::vector<uint32_t> queue;
  queue.reserve(nodes_.size());
  queue.push_back(0);
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t parent = queue[i];
    for (uint32_t at = nodes_[parent].first_child; at != 0; at = nodes_[at].next_sibling) {
      Node& node = nodes_[at];
      node.fallback = parent == 0 ? 0 : step(nodes_[parent].fallback, node.byte);
      if (node.n_matched == 0) {
        node.n_matched = nodes_[node.fallback].n_matched;
        node.id = nodes_[node.fallback].id;
      }
      queue.push_back(at);
    }
  }
}

uint32_t SpecialMatcher::step(uint32_t node, uint8_t byte) const {
  for (;;) {
    const uint32_t next = child(node, byte);
    if (next != 0 || node == 0) return next;
    node = nodes_[node].fallback;
  }
}

std::vector<SpecialMatcher::Match> SpecialMatcher::find_all(std::string_view text) const {
  std::vector<Match> found;
  if (nodes_.size() == 1) return found;
  uint32_t node = 0;
  for (size_t i = text.size(); i-- > 0;) {
    node = step(node, static_cast<uint8_t>(text[i]));
    if (nodes_[node].n_matched != 0) found.push_back({i, nodes_[node].n_matched, nodes_[node].id});
  }
  std::reverse(found.begin(), found.end());
  size_t end = 0;
  const auto overlaps = [&end](const Match& match) {
    if (match.begin < end) return true;
    end = match.begin + match.n_bytes;
    return false;
  };
  found.erase(std::remove_if(found.begin(), found.end(), overlaps), found.end());
  return found;
}

}  // namespace tessera
