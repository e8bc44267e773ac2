#include "cli/model_flags.hpp"

#include <cstdlib>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace tessera::cli {
namespace {

constexpr const char* kDefaultModelFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr int64_t kMaxContext = 1 << 24;

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "tessera";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/") / ".cache" / "tessera";
}

std::string check_force(std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && equals + 1 < text.size()) return {};
  return fmt::format("expected op=row, got '{}'", text);
}

void add_model(CLI::App& command, std::string& model) {
  command.add_option("MODEL", model, "A GGUF file, or 'default' for the bundled small model")
      ->required()
      ->type_name("");
}

}  // namespace

std::filesystem::path default_model_path() {
  const char* path = std::getenv("TESSERA_DEFAULT_MODEL");
  if (path != nullptr && *path != '\0') return path;
  return cache_folder() / "models" / kDefaultModelFile;
}

std::filesystem::path resolve_model(const std::string& model) {
  std::error_code error;
  if (model == "default" && !std::filesystem::exists(model, error)) {
    const std::filesystem::path path = default_model_path();
    if (!std::filesystem::exists(path, error)) {
      fail(ErrorKind::kInvalidFile, "default",
           "the bundled model is not at {}; get it with tools/fetch_default_model.py, or set "
           "TESSERA_DEFAULT_MODEL to a GGUF file",
           path.string());
    }
    return path;
  }
  const auto status = std::filesystem::status(model, error);
  if (std::filesystem::is_directory(status)) {
    fail(ErrorKind::kInvalidFile, model,
         "expected a GGUF file, got a folder; model folders come in a later version");
  }
  if (!std::filesystem::exists(status)) {
    const auto slash = model.find('/');
    const bool hub_name = slash != std::string::npos && slash > 0 && model[0] != '.' &&
                          model.find('/', slash + 1) == std::string::npos &&
                          !model.ends_with(".gguf");
    fail(ErrorKind::kInvalidFile, model, "{}",
         hub_name ? "no such file; models by ORG/NAME come in a later version, give a GGUF file"
                  : "no such file; give a GGUF file, or 'default' for the bundled model");
  }
  return model;
}

void ModelFlags::add_tokenizer_flags(CLI::App& command) {
  add_model(command, model);
  command
      .add_option("--pretokenizer", load.pretokenizer,
                  "Splitting rules before byte-pair merges, instead of the file's label")
      ->group("Model");
}

void ModelFlags::add_run_flags(CLI::App& command) {
  add_tokenizer_flags(command);
  const auto add = [&](const std::string& flags, auto& value, const std::string& description) {
    return command.add_option(flags, value, description)->group("Model");
  };
  add("-c,--ctx", load.context, "Tokens of context; 0: the model's own, at most 4096")
      ->check(integer_between(0, kMaxContext))
      ->capture_default_str();
  add("--device", load.device, "Where the model runs; see tessera --list-devices")
      ->capture_default_str();
  add("-t,--threads", load.n_threads, "CPU threads; 0: as many as the process may use")
      ->check(integer_between(0, 1024))
      ->capture_default_str();
  add("--isa", load.isa,
      "Highest CPU tier to use: portable, neon, dotprod, avx2, avx512, avx512vnni, amx");
  add("--activations", activations,
      "How activations enter products with quantised weights: auto may quantise them for speed, "
      "f32 is exact")
      ->check(CLI::IsMember({"auto", "f32", "q8"}))
      ->capture_default_str();
  add("--kv-type", kv_type, "Type of the key and value cache")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  add("--force", force, "Kernel to use for an op, as op=row; repeatable")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_force, "op=row"));
  command
      .add_flag("--deterministic", load.deterministic,
                "Equal bits whatever else is in a batch or was cached; CPU only")
      ->group("Model");
  command
      .add_flag("--allow-reference", load.allow_reference,
                "Run ops without a kernel on the slow reference")
      ->group("Model");
  add("--trace-tensors", trace_tensors,
      "Write hash and summary of every tensor of every step to this file (see diff-trace)");
}

LoadOptions ModelFlags::options() const {
  LoadOptions result = load;
  result.activations = activations == "f32"  ? ActivationMode::kF32
                       : activations == "q8" ? ActivationMode::kQ8
                                             : ActivationMode::kAuto;
  result.kv_type = kv_type == "f32" ? KvType::kF32 : KvType::kF16;
  for (const std::string& choice : force) {
    const size_t equals = choice.find('=');
    result.force.emplace_back(choice.substr(0, equals), choice.substr(equals + 1));
  }
  result.trace_tensors = trace_tensors;
  return result;
}

ModelFlags::Loaded ModelFlags::load_model(Action& action) const {
  const std::filesystem::path path = resolve_model(model);
  action.model_path = path.string();
  const int64_t start_ns = now_ns();
  Model loaded = Model::load(path, options());
  return {std::move(loaded), static_cast<double>(now_ns() - start_ns) * 1e-6};
}

std::string settings_line(const ModelInfo& info) {
  return fmt::format("{} {}, {} ({} thread{}), activations {}, kv {}, context {}", info.name,
                     info.weight_type, info.device, info.n_threads, info.n_threads == 1 ? "" : "s",
                     info.activations, info.kv_type, info.context);
}

}  // namespace tessera::cli
