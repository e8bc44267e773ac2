#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace tessera {

enum class LogLevel { kDebug, kInfo, kWarning };

/// The library never prints: it hands lines to this callback (none by default).
/// The callback may be called from any thread, one call at a time.
using LogCallback = std::function<void(LogLevel, std::string_view)>;
void set_log_callback(LogCallback callback);
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera
