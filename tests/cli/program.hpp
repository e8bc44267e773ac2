#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

/// What the program did.
struct Outcome {
  int exit_code = -1;  ///< -1: ended by a signal
  int signal = 0;
  std::string out, err;

  /// The one JSON value on stdout; a test failure when there is not exactly one line.
  nlohmann::json json() const;
  size_t n_error_lines() const;
};

struct Invocation {
  std::vector<std::string> arguments;
  std::string input = {};  ///< standard input, then its end
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string output_path = {};  ///< not empty: stdout goes there instead
};

/// Runs the built `tessera` to its end. Its environment is this process's without TESSERA_
/// variables, with `environment` added.
Outcome run_with(const Invocation& invocation);
inline Outcome run_tessera(std::vector<std::string> arguments) {
  return run_with({.arguments = std::move(arguments)});
}

/// A running program, for signals.
class Process {
 public:
  explicit Process(const Invocation& invocation);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits for the first bytes on stdout.
  void wait_for_output();
  void close_output();
  Outcome finish();

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::string seen_;
};

/// A folder that vanishes with the test.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

}  // namespace tessera::test
