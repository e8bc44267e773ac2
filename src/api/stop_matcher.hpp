#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Watches text that arrives in pieces for stop strings and passes on what can no longer be the
/// beginning of one. Pieces are whole UTF-8 characters; so then is all that comes out.
class StopMatcher {
 public:
  /// Throws Error{kInvalidArgument} for a stop string that is empty or not UTF-8.
  explicit StopMatcher(std::vector<std::string> stops);

  /// The text that is free to be shown. Once a stop string was complete: what stood before the
  /// first one, and nothing from there on.
  std::string push(std::string_view text);
  /// The end of the text: what was still held back.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // a suffix of the text that a stop string may begin with
  bool stopped_ = false;
};

}  // namespace tessera
