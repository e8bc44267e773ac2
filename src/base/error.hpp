#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "tessera/error.hpp"

namespace tessera {

/// Throws Error{kind, where, formatted message}.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, std::string where, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Error(kind, std::move(where), fmt::format(format, std::forward<Args>(args)...));
}

/// A value or an Error, for paths where an exception may not travel (device queues, worker
/// threads). `value()` throws the error on the caller's thread.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool ok() const noexcept { return state_.index() == 0; }
  const Error& error() const { return std::get<Error>(state_); }
  T& value() & {
    if (!ok()) throw std::get<Error>(state_);
    return std::get<T>(state_);
  }
  T&& value() && {
    if (!ok()) throw std::get<Error>(state_);
    return std::get<T>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status ok_status() {
  return std::monostate{};
}

}  // namespace tessera
