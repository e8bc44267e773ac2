#include "tokenizer/bpe.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.hpp"
#include "base/error.hpp"
#include "tokenizer/byte_alphabet.hpp"

namespace tessera {
namespace {

// A symbol is a token id, or one of these names for a byte that has no token.
constexpr uint32_t kFirstByteSymbol = 0xFFFFFF00U - 1;
constexpr uint32_t kNoSymbol = UINT32_MAX;
constexpr uint32_t kNone = UINT32_MAX;  // no position, no merge

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, std::span<const std::string_view> merges,
         const std::string& source)
    : vocabulary_(&vocabulary) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary.find_normal(byte_character(static_cast<uint8_t>(byte)));
    byte_symbols_[byte] = id ? *id : kFirstByteSymbol + byte;
  }
  merges_.reserve(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string_view::npos) {
      fail(ErrorKind::kInvalidFile, source,
           "tokenizer.ggml.merges: expected merge {} to be two words with one space between them, "
           "got {:?}",
           i, merge.substr(0, 64));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const Merge entry{symbol_of(left), symbol_of(right), symbol_of(joined)};
    if (entry.left == kNoSymbol || entry.right == kNoSymbol || entry.result == kNoSymbol) continue;
    merges_.push_back(entry);
  }
  index_merges();
}

// The symbol that spells `text`, or kNoSymbol: then no text ever contains it as a symbol.
uint32_t Bpe::symbol_of(std::string_view text) const {
  if (const auto id = vocabulary_->find_normal(text)) return *id;
  if (text.size() > 2) return kNoSymbol;
  std::string byte;
  append_from_byte_alphabet(text, byte);
  if (byte.size() != 1 || byte_character(static_cast<uint8_t>(byte[0])) != text) return kNoSymbol;
  return byte_symbols_[static_cast<uint8_t>(byte[0])];
}

void Bpe::index_merges() {
  slots_.assign(std::bit_ceil(2 * merges_.size() + 1), kNone);
  for (uint32_t i = 0; i < merges_.size(); ++i) {
    const size_t slot = slot_of(merges_[i].left, merges_[i].right);
    if (slots_[slot] == kNone) slots_[slot] = i;
  }
}

// Where the pair is, or where it would be put.
size_t Bpe::slot_of(uint32_t left, uint32_t right) const {
  const size_t mask = slots_.size() - 1;
  uint64_t hash = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 32;
  size_t slot = hash & mask;
  while (slots_[slot] != kNone) {
    const Merge& merge = merges_[slots_[slot]];
    if (merge.left == left && merge.right == right) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

uint32_t Bpe::find_merge(uint32_t left, uint32_t right) const {
  return slots_[slot_of(left, right)];
}

void Bpe::encode(std::string_view piece, const Options& options, Scratch& scratch,
                 std::vector<TokenId>& ids) const {
  TESSERA_DCHECK(piece.size() < UINT32_MAX);
  if (options.ignore_merges && piece.size() <= vocabulary_->longest_text_bytes()) {
    scratch.text.clear();
    append_in_byte_alphabet(piece, scratch.text);
    if (const auto id = vocabulary_->find_normal(scratch.text)) {
      ids.push_back(*id);
      return;
    }
  }
  scratch.symbols.clear();
  for (const char byte : piece) {
    scratch.symbols.push_back(byte_symbols_[static_cast<uint8_t>(byte)]);
  }
  if (piece.size() > 1) merge_all(scratch);
  for (const uint32_t symbol : scratch.symbols) {
    if (symbol < kFirstByteSymbol) ids.push_back(symbol);  // neither merged away nor a bare byte
  }
}

// Symbols form a linked list, so that a merge touches only its neighbours; candidates wait in a
// heap ordered by merge, then position. One whose pair has changed meanwhile is recognised when it
// comes out: symbols only ever grow, so an equal pair at the same position is the same pair.
void Bpe::merge_all(Scratch& scratch) const {
  std::vector<uint32_t>& symbols = scratch.symbols;
  std::vector<uint64_t>& heap = scratch.candidates;
  const auto n_symbols = static_cast<uint32_t>(symbols.size());
  scratch.previous.resize(n_symbols);
  scratch.next.resize(n_symbols);
  heap.clear();
  for (uint32_t i = 0; i < n_symbols; ++i) {
    scratch.previous[i] = i == 0 ? kNone : i - 1;
    scratch.next[i] = i + 1 == n_symbols ? kNone : i + 1;
    if (i + 1 == n_symbols) break;
    const uint32_t merge = find_merge(symbols[i], symbols[i + 1]);
    if (merge != kNone) heap.push_back(uint64_t{merge} << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto propose = [&](uint32_t left, uint32_t right) {
    const uint32_t merge = find_merge(symbols[left], symbols[right]);
    if (merge == kNone) return;
    heap.push_back(uint64_t{merge} << 32 | left);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Merge& merge = merges_[heap.back() >> 32];
    const auto left = static_cast<uint32_t>(heap.back());
    heap.pop_back();
    const uint32_t right = scratch.next[left];
    if (symbols[left] != merge.left || right == kNone || symbols[right] != merge.right) continue;
    symbols[left] = merge.result;
    symbols[right] = kNoSymbol;
    const uint32_t after = scratch.next[right];
    scratch.next[left] = after;
    if (after != kNone) {
      scratch.previous[after] = left;
      propose(left, after);
    }
    if (scratch.previous[left] != kNone) propose(scratch.previous[left], left);
  }
}

}  // namespace tessera
