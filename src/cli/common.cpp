#include "cli/common.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/text.hpp"

namespace tessera::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string read_stream(std::FILE* stream, const std::string& where) {
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const size_t n = std::fread(chunk.data(), 1, chunk.size(), stream)) {
    text.append(chunk.data(), n);
  }
  if (std::ferror(stream)) fail(ErrorKind::kIo, where, "reading failed: {}", std::strerror(errno));
  return text;
}

template <typename T>
bool parses(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

int exit_code(const Error& error, std::string_view model_path) {
  switch (error.kind()) {
    case ErrorKind::kInvalidArgument:
      return kExitUsage;
    case ErrorKind::kInvalidFile:
      return kExitInvalidFile;
    case ErrorKind::kOutOfMemory:
      return kExitDoesNotFit;
    case ErrorKind::kCancelled:
      return kExitInterrupted;
    case ErrorKind::kUnsupported:
      // The file is at fault when the error is about it, else the machine or the choice of flags.
      return !model_path.empty() && error.where().starts_with(model_path) ? kExitInvalidFile
                                                                          : kExitFailure;
    case ErrorKind::kIo:
    case ErrorKind::kDevice:
    case ErrorKind::kDeviceLost:
      return kExitFailure;
  }
  return kExitFailure;
}

void print_error(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = is_terminal(stderr) && (no_color == nullptr || *no_color == '\0');
  std::fflush(stdout);
  note("{}: {}", color ? "\033[1;31mtessera\033[0m" : "tessera", line);
}

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    fail(ErrorKind::kIo, "standard output", "writing failed: {}", std::strerror(errno));
  }
}

void flush_out() {
  if (std::fflush(stdout) != 0) {
    fail(ErrorKind::kIo, "standard output", "writing failed: {}", std::strerror(errno));
  }
}

void print_json(const Json& value) {
  write_out(value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  flush_out();
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

std::string human_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string escaped(std::string_view text) {
  const bool valid = is_valid_utf8(text);
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !valid)) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

CLI::App* add_command(CLI::App& parent, Action& action, const std::string& name,
                      const std::string& description, const std::string& examples,
                      std::function<int()> run) {
  CLI::App* command = parent.add_subcommand(name, description);
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  // Immediate: only the command in use reads its environment variables.
  command->immediate_callback();
  command->callback([&action, run = std::move(run)] { action.run = run; });
  return command;
}

void add_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option == app.get_help_ptr()) continue;
    std::string variable = "TESSERA_";
    for (const char c : option->get_lnames().front()) {
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    option->envname(variable);
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) add_environment(*command);
}

CLI::Validator integer_between(int64_t min, int64_t max) {
  return {[min, max](std::string& text) -> std::string {
            int64_t value = 0;
            if (parses(text, value) && value >= min && value <= max) return {};
            return fmt::format("expected an integer from {} to {}, got '{}'", min, max, text);
          },
          fmt::format("{}..{}", min, max)};
}

CLI::Validator unsigned_64() {
  return {[](std::string& text) -> std::string {
            uint64_t value = 0;
            if (parses(text, value)) return {};
            return fmt::format("expected an integer from 0 to 18446744073709551615, got '{}'",
                               text);
          },
          "0..2^64-1"};
}

CLI::Validator number_between(double min, double max) {
  return {[min, max](std::string& text) -> std::string {
            double value = 0;
            if (parses(text, value) && value >= min && value <= max) return {};
            return fmt::format("expected a number from {} to {}, got '{}'", min, max, text);
          },
          fmt::format("{}..{}", min, max)};
}

CLI::Validator number_above(double min, double max) {
  return {[min, max](std::string& text) -> std::string {
            double value = 0;
            if (parses(text, value) && value > min && value <= max) return {};
            return fmt::format("expected a number above {}, at most {}, got '{}'", min, max, text);
          },
          fmt::format("above {}, at most {}", min, max)};
}

std::string TextSource::read() const {
  const bool has_text = text_option != nullptr && text_option->count() > 0;
  if (file_option != nullptr && file_option->count() > 0) {
    if (has_text) {
      fail(ErrorKind::kInvalidArgument, "--file", "give either {} or --file, not both",
           text_option->get_name());
    }
    return read_file(file);
  }
  if (has_text && text != "-") return text;
  if (is_terminal(stdin) && is_terminal(stderr)) {
    note("reading the text from the terminal; Ctrl-D ends it");
  }
  return read_stream(stdin, "standard input");
}

std::string read_file(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    fail(ErrorKind::kInvalidFile, path, "cannot be read: {}", std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    fail(ErrorKind::kInvalidFile, path, "expected a text file, got a folder");
  }
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) fail(ErrorKind::kInvalidFile, path, "cannot be read: {}", std::strerror(errno));
  return read_stream(file.get(), path);
}

}  // namespace tessera::cli
