#include "base/log.hpp"

#include <mutex>

namespace tessera {
namespace {

std::mutex log_mutex;
LogCallback log_callback;

}  // namespace

void set_log_callback(LogCallback callback) {
  const std::lock_guard lock(log_mutex);
  log_callback = std::move(callback);
}

void log_line(LogLevel level, std::string_view line) {
  const std::lock_guard lock(log_mutex);
  if (log_callback) log_callback(level, line);
}

}  // namespace tessera
