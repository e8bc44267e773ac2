#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/error.hpp"

// What every command of the program shares: exit codes, output, flags with ranges.

namespace tessera::cli {

using Json = nlohmann::ordered_json;

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,      ///< failed at run time; for diff-trace: the traces differ
  kExitUsage = 2,        ///< an unknown flag, a value out of range, flags that exclude each other
  kExitInvalidFile = 3,  ///< the model or input file is missing, malformed or unsupported
  kExitDoesNotFit = 4,   ///< not enough memory
  kExitInterrupted = 130,
};

/// The exit code that stands for the error; `model_path` is the model in use, if any.
int exit_code(const Error& error, std::string_view model_path);

/// "tessera: message" as exactly one line on stderr.
void print_error(std::string_view message);

/// Text on stdout. Throws Error{kIo} when it cannot be written (a full disk).
void write_out(std::string_view text);
void flush_out();
template <typename... Args>
void out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

/// One JSON value on a line of stdout; malformed UTF-8 becomes U+FFFD.
void print_json(const Json& value);

/// A line on stderr, for people: settings, timings, progress.
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = fmt::format(format, std::forward<Args>(args)...) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// True when people read the stream: the only time for progress.
bool is_terminal(std::FILE* stream);

/// "1.5 GiB", "96.4 MiB".
std::string human_bytes(double bytes);

/// Bytes of a token or of a file as one line for a terminal: quotes, backslashes, control
/// characters and malformed UTF-8 escaped, in double quotes.
std::string escaped(std::string_view text);

/// What was asked for: set by the command that the arguments name, run after parsing.
struct Action {
  std::function<int()> run;
  std::string model_path;  ///< set by the command once it knows the file
};

/// Adds a subcommand; its flags follow. `examples` are lines shown under its help.
CLI::App* add_command(CLI::App& parent, Action& action, const std::string& name,
                      const std::string& description, const std::string& examples,
                      std::function<int()> run);

/// Gives every long flag of the commands its environment variable TESSERA_<FLAG>.
void add_environment(CLI::App& app);

// Validators whose message names the range.
CLI::Validator integer_between(int64_t min, int64_t max);
CLI::Validator unsigned_64();
CLI::Validator number_between(double min, double max);
/// The same with `min` itself excluded.
CLI::Validator number_above(double min, double max);

/// TEXT of the command line, else the file, else standard input, byte for byte. `text` "-" is
/// standard input too. Throws Error{kInvalidArgument} when both are given.
struct TextSource {
  std::string text, file;
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;
  std::string read() const;
};
std::string read_file(const std::string& path);

}  // namespace tessera::cli
