#pragma once

#include <atomic>

namespace tessera::cli {

/// SIGBUS (a mapped model file became shorter) becomes an error with exit code 3; a closed pipe
/// ends the program quietly, as it ends other filters.
void install_signal_handlers();

/// While it lives, the first Ctrl-C (or SIGTERM) sets `flag()`; the second one kills the program.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  const std::atomic<bool>& flag() const;
  bool interrupted() const { return flag().load(); }
};

}  // namespace tessera::cli
