#include "cli/signals.hpp"

#include <unistd.h>
#include <csignal>

#include "cli/common.hpp"

namespace tessera::cli {
namespace {

std::atomic<bool> interrupt_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set inside a signal handler");

// Handlers below call only async-signal-safe functions.

void on_interrupt(int signal_number) {
  interrupt_flag.store(true);
  std::signal(signal_number, SIG_DFL);
}

void on_bus_error(int) {
  // Several threads of the team may read the file: the first one tells, and ends the process.
  static std::atomic<bool> told = false;
  while (told.exchange(true)) pause();
  constexpr char kMessage[] =
      "tessera: reading a mapped file failed: the model file became shorter while in use, or its "
      "disk reports errors; check the file and start again\n";
  const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(written >= 0 ? kExitInvalidFile : kExitFailure);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  handle(SIGPIPE, SIG_DFL);
  handle(SIGBUS, on_bus_error);
}

InterruptScope::InterruptScope() {
  interrupt_flag.store(false);
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_interrupt);
}

InterruptScope::~InterruptScope() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptScope::flag() const {
  return interrupt_flag;
}

}  // namespace tessera::cli
