#include "webgpu/wgsl.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.hpp"

namespace tessera::webgpu {
namespace {

std::string to_text(const TemplateValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number ? std::to_string(*number) : std::get<std::string>(value);
}

/// Where in which file a message belongs.
struct Position {
  std::string_view file;
  size_t line;
  std::string text() const { return fmt::format("{}:{}", file, line); }
};

/// Recursive descent over one expression, weakest operator first.
class Expression {
 public:
  Expression(std::string_view text, const TemplateValues& values, const Position& at)
      : text_(text), values_(values), at_(at) {}

  TemplateValue evaluate() {
    TemplateValue value = binary(0);
    skip_space();
    if (next_ != text_.size()) error("unexpected '{}'", text_.substr(next_));
    return value;
  }

 private:
  template <typename... Args>
  [[noreturn]] void error(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kInvalidArgument, at_.text(), "{} in the expression '{}'",
         fmt::format(format, std::forward<Args>(args)...), text_);
  }

  void skip_space() {
    while (next_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[next_]))) ++next_;
  }

  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(next_, token.size()) != token) return false;
    next_ += token.size();
    return true;
  }

  int64_t number(const TemplateValue& value) const {
    const auto* number = std::get_if<int64_t>(&value);
    if (!number) error("expected a number, got '{}'", std::get<std::string>(value));
    return *number;
  }

  /// Operators by level of binding, weakest first; longer ones before their prefixes.
  TemplateValue binary(size_t level) {
    static const std::vector<std::vector<std::string_view>> kLevels = {
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == kLevels.size()) return unary();
    TemplateValue left = binary(level + 1);
    while (true) {
      std::string_view found;
      for (const std::string_view op : kLevels[level]) {
        if (found.empty() && accept(op)) found = op;
      }
      if (found.empty()) return left;
      left = apply(found, left, binary(level + 1));
    }
  }

  TemplateValue apply(std::string_view op, const TemplateValue& left, const TemplateValue& right) {
    if (op == "==" || op == "!=") {
      if (left.index() != right.index()) error("'{}' compares a number with text", op);
      return int64_t{(left == right) == (op == "==")};
    }
    const int64_t a = number(left), b = number(right);
    if (op == "||") return int64_t{a != 0 || b != 0};
    if (op == "&&") return int64_t{a != 0 && b != 0};
    if (op == "<=") return int64_t{a <= b};
    if (op == ">=") return int64_t{a >= b};
    if (op == "<") return int64_t{a < b};
    if (op == ">") return int64_t{a > b};
    int64_t result = 0;
    bool overflow = false;
    if (op == "+") {
      overflow = __builtin_add_overflow(a, b, &result);
    } else if (op == "-") {
      overflow = __builtin_sub_overflow(a, b, &result);
    } else if (op == "*") {
      overflow = __builtin_mul_overflow(a, b, &result);
    } else {
      if (b == 0) error("division by zero");
      overflow = a == INT64_MIN && b == -1;
      if (!overflow) result = op == "/" ? a / b : a % b;
    }
    if (overflow) error("'{}' overflows", op);
    return result;
  }

  TemplateValue unary() {
    if (accept("!")) return int64_t{number(unary()) == 0};
    if (accept("-")) return apply("-", int64_t{0}, unary());
    return primary();
  }

  TemplateValue primary() {
    if (accept("(")) {
      TemplateValue value = binary(0);
      if (!accept(")")) error("expected ')'");
      return value;
    }
    if (accept("'")) {
      const size_t end = text_.find('\'', next_);
      if (end == std::string_view::npos) error("expected a closing quote");
      std::string value(text_.substr(next_, end - next_));
      next_ = end + 1;
      return value;
    }
    const size_t begin = next_;
    const auto in_word = [&] {
      return next_ < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[next_])) || text_[next_] == '_');
    };
    while (in_word()) ++next_;
    const std::string_view word = text_.substr(begin, next_ - begin);
    if (word.empty()) error("expected a value at '{}'", text_.substr(begin));
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return lookup(word);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size()) {
      error("'{}' is not a whole number", word);
    }
    return value;
  }

  const TemplateValue& lookup(std::string_view name) const {
    // Backwards: an inner loop's variable hides what was there before.
    for (auto value = values_.rbegin(); value != values_.rend(); ++value) {
      if (value->first == name) return value->second;
    }
    error("unknown name '{}'", name);
  }

  std::string_view text_;
  const TemplateValues& values_;
  const Position& at_;
  size_t next_ = 0;
};

class Expansion {
 public:
  Expansion(std::string_view file, std::string_view text, const TemplateValues& values)
      : file_(file), values_(values) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      lines_.push_back(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

  std::string run() {
    const size_t end = block(0, true, {});
    if (end != lines_.size()) error(end, "'{}' closes nothing", trimmed(end));
    return std::move(output_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void error(size_t line, fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kInvalidArgument, position(line).text(), "{}",
         fmt::format(format, std::forward<Args>(args)...));
  }
  Position position(size_t line) const { return {file_, line + 1}; }

  std::string_view trimmed(size_t line) const {
    std::string_view text = lines_[line];
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
  }

  /// The rest of a line that starts with the directive, or nothing.
  std::optional<std::string_view> directive(size_t line, std::string_view name) const {
    const std::string_view text = trimmed(line);
    if (text.substr(0, name.size()) != name) return std::nullopt;
    const std::string_view rest = text.substr(name.size());
    if (!rest.empty() && rest[0] != ' ' && rest[0] != '(') return std::nullopt;
    return rest;
  }

  int64_t number(std::string_view text, size_t line) const {
    const Position at = position(line);
    const TemplateValue value = Expression(text, values_, at).evaluate();
    const auto* result = std::get_if<int64_t>(&value);
    if (!result) error(line, "expected a number, got '{}'", std::get<std::string>(value));
    return *result;
  }

  /// Goes through lines from `line`, writing them when `live`, to the line that closes the block
  /// (one of `closers`) or that nothing here opened. Returns its index.
  size_t block(size_t line, bool live, std::initializer_list<std::string_view> closers) {
    const size_t opened = line;
    for (; line < lines_.size(); ++line) {
      const std::string_view text = trimmed(line);
      if (text.empty() || text[0] != '#') {
        if (live) write(line);
      } else if (const auto condition = directive(line, "#if")) {
        line = if_block(line, *condition, live);
      } else if (const auto header = directive(line, "#for")) {
        line = for_block(line, *header, live);
      } else if (const auto path = directive(line, "#include")) {
        if (live) include(*path, line);
      } else if (directive(line, "#else") || directive(line, "#endif") ||
                 directive(line, "#endfor")) {
        for (const std::string_view closer : closers) {
          if (text == closer) return line;
        }
        error(line, "'{}' closes nothing", text);
      } else {
        error(line,
              "unknown directive '{}'; expected #if, #else, #endif, #for, #endfor or #include",
              text);
      }
    }
    if (closers.size() > 0) error(opened - 1, "'{}' is never closed", trimmed(opened - 1));
    return line;
  }

  size_t if_block(size_t line, std::string_view condition, bool live) {
    const bool taken = live && number(condition, line) != 0;
    size_t end = block(line + 1, taken, {"#else", "#endif"});
    if (trimmed(end) == "#else") end = block(end + 1, live && !taken, {"#endif"});
    return end;
  }

  size_t for_block(size_t line, std::string_view header, bool live) {
    const size_t in = header.find(" in "), dots = header.find("..");
    if (in == std::string_view::npos || dots == std::string_view::npos || dots < in) {
      error(line, "expected '#for NAME in BEGIN..END'");
    }
    if (!live) return block(line + 1, false, {"#endfor"});
    std::string_view name = header.substr(0, in);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    const int64_t begin = number(header.substr(in + 4, dots - in - 4), line);
    const int64_t end = number(header.substr(dots + 2), line);
    if (begin >= end) return block(line + 1, false, {"#endfor"});
    size_t last = line;
    for (int64_t i = begin; i < end; ++i) {
      values_.emplace_back(std::string(name), i);
      last = block(line + 1, true, {"#endfor"});
      values_.pop_back();
    }
    return last;
  }

  void include(std::string_view path, size_t line) {
    const TemplateValue value = Expression(path, values_, position(line)).evaluate();
    const std::string file = to_text(value);
    output_ += Expansion(file, wgsl_file(file), values_).run();
  }

  void write(size_t line) {
    std::string_view rest = lines_[line];
    const Position at = position(line);
    while (true) {
      const size_t begin = rest.find("${");
      output_ += rest.substr(0, begin);
      if (begin == std::string_view::npos) break;
      const size_t end = rest.find('}', begin);
      if (end == std::string_view::npos) error(line, "'${{' is never closed");
      output_ +=
          to_text(Expression(rest.substr(begin + 2, end - begin - 2), values_, at).evaluate());
      rest.remove_prefix(end + 1);
    }
    output_ += '\n';
  }

  std::string_view file_;
  std::vector<std::string_view> lines_;
  TemplateValues values_;
  std::string output_;
};

}  // namespace

std::string Kernel::label() const {
  std::string label = file + ":" + entry;
  for (size_t i = 0; i < values.size(); ++i) {
    label +=
        fmt::format("{}{}={}", i == 0 ? "{" : ", ", values[i].first, to_text(values[i].second));
  }
  return values.empty() ? label : label + "}";
}

std::string_view wgsl_file(std::string_view path) {
  for (const WgslFile& file : wgsl_files()) {
    if (file.path == path) return file.text;
  }
  fail(ErrorKind::kInvalidArgument, std::string(path), "no such WGSL file in this build");
}

std::string expand(std::string_view file, std::string_view text, const TemplateValues& values) {
  return Expansion(file, text, values).run();
}

std::string native_wgsl(const Kernel& kernel) {
  const std::string_view source =
      kernel.source.empty() ? wgsl_file(kernel.file) : std::string_view(kernel.source);
  std::string text = expand(kernel.file, source, kernel.values);
  constexpr std::string_view kEnable = "enable subgroups;";
  const size_t at = text.find(kEnable);
  if (at != std::string::npos && (at == 0 || text[at - 1] == '\n')) text.erase(at, kEnable.size());
  return text;
}

}  // namespace tessera::webgpu
