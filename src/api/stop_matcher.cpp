#include "api/stop_matcher.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tessera {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty())
      fail(ErrorKind::kInvalidArgument, "stop", "expected text, got an empty string");
    if (replace_invalid_utf8(stop) != stop) {
      fail(ErrorKind::kInvalidArgument, "stop", "expected UTF-8, got other bytes");
    }
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  // The stop that is complete first ends the text, whatever the pieces it came in; of those that
  // end together the longest.
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
      begin = at;
      end = at + stop.size();
    }
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  // Hold back the longest suffix that some stop string begins with.
  size_t n_held = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > n_held; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) n_held = n;
    }
  }
  std::string free_text = held_.substr(0, held_.size() - n_held);
  held_.erase(0, free_text.size());
  return free_text;
}

std::string StopMatcher::flush() {
  return std::exchange(held_, {});
}

}  // namespace tessera
