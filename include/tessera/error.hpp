#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tessera {
inline namespace v1 {

/// What went wrong, as far as a caller can act on it.
enum class ErrorKind {
  kInvalidArgument,  ///< a value that the caller passed
  kInvalidFile,      ///< a model or input file is malformed
  kUnsupported,      ///< well-formed, but this build, device or format cannot do it
  kOutOfMemory,      ///< does not fit
  kIo,               ///< the operating system refused a file operation
  kDevice,           ///< a device reported an error; the engine stays usable
  kDeviceLost,       ///< the device is gone: everything on it is dead
  kCancelled,        ///< stopped on request
};

/// The one exception of the library. `what()` says what was expected, what came and what to do;
/// `where()` names the file, tensor or operation concerned (may be empty).
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string where, const std::string& message)
      : std::runtime_error(where.empty() ? message : where + ": " + message),
        kind_(kind),
        where_(std::move(where)) {}

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& where() const noexcept { return where_; }

 private:
  ErrorKind kind_;
  std::string where_;
};

}  // namespace v1
}  // namespace tessera
