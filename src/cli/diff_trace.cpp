#include <fstream>
#include <optional>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace tessera::cli {
namespace {

struct DiffOptions {
  std::string left, right;
  bool json = false;
};

/// Reads the JSON lines of --trace-tensors.
class TraceReader {
 public:
  explicit TraceReader(const std::string& path) : path_(path), file_(path) {
    if (!file_) fail(ErrorKind::kInvalidFile, path, "cannot be read");
  }

  /// The next line; nothing at the end of the file.
  std::optional<Json> next() {
    std::string line;
    if (!std::getline(file_, line)) return std::nullopt;
    ++n_lines_;
    Json entry = Json::parse(line, nullptr, false);
    bool good = entry.is_object();
    for (const char* key : {"op", "tensor", "dtype", "hash"}) {
      good = good && entry.contains(key) && entry[key].is_string();
    }
    for (const char* key : {"step", "index"}) {
      good = good && entry.contains(key) && entry[key].is_number_integer();
    }
    if (!good) fail(ErrorKind::kInvalidFile, path_, "line {} is no line of a trace", n_lines_);
    return entry;
  }
  int64_t n_lines() const { return n_lines_; }

 private:
  std::string path_;
  std::ifstream file_;
  int64_t n_lines_ = 0;
};

/// What must agree; rows may differ between devices.
bool same_tensor(const Json& a, const Json& b) {
  for (const char* key : {"step", "index", "op", "tensor", "dtype", "shape"}) {
    if (a.value(key, Json()) != b.value(key, Json())) return false;
  }
  return true;
}

std::string place(const Json& entry) {
  return fmt::format("step {}, op {} ({}), tensor {} {} {}", entry["step"].get<int64_t>(),
                     entry["index"].get<int64_t>(), entry["op"].get<std::string>(),
                     entry["tensor"].get<std::string>(), entry["dtype"].get<std::string>(),
                     entry.value("shape", Json()).dump());
}

std::string summary(const Json& entry) {
  std::string text = fmt::format("row {}, hash {}", entry.value("row", Json()).dump(),
                                 entry["hash"].get<std::string>());
  for (const char* key : {"min", "max", "mean", "l2", "first"}) {
    text += fmt::format(", {} {}", key, entry.value(key, Json()).dump());
  }
  return text;
}

int report(const DiffOptions& flags, const char* what, const Json& left, const Json& right) {
  if (flags.json) {
    print_json({{"equal", false}, {"difference", what}, {"a", left}, {"b", right}});
    return kExitFailure;
  }
  out("{}: {}\n", what, place(left.is_null() ? right : left));
  if (!left.is_null()) out("  a: {}\n", summary(left));
  if (!right.is_null()) out("  b: {}\n", summary(right));
  flush_out();
  return kExitFailure;
}

int diff_trace(const DiffOptions& flags) {
  TraceReader left_file(flags.left), right_file(flags.right);
  for (;;) {
    const std::optional<Json> left = left_file.next(), right = right_file.next();
    if (!left && !right) break;
    if (!left || !right) {
      return report(flags, left ? "b ends before" : "a ends before", left.value_or(Json()),
                    right.value_or(Json()));
    }
    if (!same_tensor(*left, *right)) return report(flags, "the steps part at", *left, *right);
    if ((*left)["hash"] != (*right)["hash"]) {
      return report(flags, "first difference in", *left, *right);
    }
  }
  if (left_file.n_lines() == 0) {
    fail(ErrorKind::kInvalidFile, flags.left, "expected the lines of a trace, got none");
  }
  if (flags.json) {
    print_json({{"equal", true}, {"tensors", left_file.n_lines()}});
  } else {
    out("equal: {} tensors\n", left_file.n_lines());
  }
  flush_out();
  return kExitOk;
}

}  // namespace

void add_diff_trace(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<DiffOptions>();
  CLI::App* command =
      add_command(app, action, "diff-trace", "Name the first tensor in which two traces differ",
                  "  tessera run model.gguf \"Hi\" -n 1 --temperature 0 --trace-tensors a.jsonl\n"
                  "  tessera run model.gguf \"Hi\" -n 1 --temperature 0 --isa portable "
                  "--trace-tensors b.jsonl\n"
                  "  tessera diff-trace a.jsonl b.jsonl",
                  [flags] { return diff_trace(*flags); });
  command->add_option("A", flags->left, "A file of --trace-tensors")->required()->type_name("");
  command->add_option("B", flags->right, "Another one")->required()->type_name("");
  command->add_flag("--json", flags->json, "Print one object: equal, and what differs");
}

}  // namespace tessera::cli
