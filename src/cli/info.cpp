#include <map>
#include <optional>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model_flags.hpp"
#include "formats/gguf.hpp"
#include "formats/text.hpp"

namespace tessera::cli {
namespace {

struct InfoOptions {
  std::string file, kv_type = "f16";
  int64_t context = 0;
  bool json = false;
};

constexpr uint64_t kShownElements = 16;

/// What loading the file for this machine says: its needs, or why it cannot run here.
struct Verdict {
  std::optional<ModelInfo> info;
  std::optional<Error> refusal;
};

/// Throws the error of a malformed file; one that is merely unsupported or too large is a verdict.
Verdict try_load(const InfoOptions& flags, const std::filesystem::path& path) {
  LoadOptions options;
  options.context = flags.context;
  options.kv_type = flags.kv_type == "f32" ? KvType::kF32 : KvType::kF16;
  try {
    return {Model::load(path, options).info(), std::nullopt};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported && error.kind() != ErrorKind::kOutOfMemory) throw;
    return {std::nullopt, error};
  }
}

Json scalar_json(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, GgufArray>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value.data);
}

/// {type, value}; an array has its size, and its first elements when it is long.
Json value_json(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value.data);
  if (array == nullptr) return {{"type", name(value.type)}, {"value", scalar_json(value)}};
  Json elements = Json::array();
  for (uint64_t i = 0; i < std::min(array->size, kShownElements); ++i) {
    elements.push_back(scalar_json(array->at(i)));
  }
  return {{"type", "array"},
          {"element_type", name(array->element_type)},
          {"size", array->size},
          {array->size <= kShownElements ? "value" : "first", elements}};
}

std::vector<int64_t> sizes(const Shape& shape) {
  std::vector<int64_t> result;
  for (int i = 0; i < shape.rank(); ++i) result.push_back(shape[i]);
  return result;
}

struct TypeTotal {
  int64_t n_tensors = 0, n_values = 0;
  uint64_t bytes = 0;
  bool supported = true;
};

std::map<std::string, TypeTotal> totals_by_type(const GgufFile& file) {
  std::map<std::string, TypeTotal> totals;
  for (const GgufTensor& tensor : file.tensors()) {
    TypeTotal& total = totals[std::string(tensor.ggml_type_name)];
    ++total.n_tensors;
    total.n_values += tensor.shape.count();
    total.bytes += tensor.bytes.size();
    total.supported = tensor.dtype != DType::kNone;
  }
  return totals;
}

int64_t total_bytes(const ModelInfo& info) {
  return info.weight_bytes + info.kv_bytes + info.arena_bytes;
}

void print_info_json(const std::filesystem::path& path, const GgufFile& file,
                     const Verdict& verdict) {
  Json metadata = Json::object();
  for (const GgufEntry& entry : file.metadata()) {
    metadata[std::string(entry.key)] = value_json(entry.value);
  }
  Json types = Json::array();
  int64_t n_params = 0;
  for (const auto& [type, total] : totals_by_type(file)) {
    n_params += total.n_values;
    types.push_back({{"type", type},
                     {"n_tensors", total.n_tensors},
                     {"n_values", total.n_values},
                     {"bytes", total.bytes},
                     {"supported", total.supported}});
  }
  Json tensors = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.ggml_type_name},
                       {"shape", sizes(tensor.shape)},
                       {"bytes", tensor.bytes.size()},
                       {"offset", tensor.offset_bytes}});
  }
  Json result = {{"file", path.string()},
                 {"size_bytes", file.size_bytes()},
                 {"gguf_version", file.version()},
                 {"alignment", file.alignment()},
                 {"data_offset", file.data_offset()},
                 {"n_params", n_params},
                 {"runs", verdict.info.has_value()}};
  if (verdict.info) {
    const ModelInfo& info = *verdict.info;
    result["memory"] = {{"context", info.context},
                        {"weight_bytes", info.weight_bytes},
                        {"kv_bytes", info.kv_bytes},
                        {"kv_type", info.kv_type},
                        {"activation_bytes", info.arena_bytes},
                        {"total_bytes", total_bytes(info)}};
  } else {
    result["reason"] = verdict.refusal->what();
  }
  result["metadata"] = std::move(metadata);
  result["types"] = std::move(types);
  result["tensors"] = std::move(tensors);
  print_json(result);
}

void print_model(const Verdict& verdict) {
  if (!verdict.info) {
    out("runs        no: {}\n", verdict.refusal->what());
    return;
  }
  const ModelInfo& info = *verdict.info;
  out("runs        yes\n");
  out("model       {}, {}, {:.1f} M parameters, {}\n", info.name, info.architecture,
      static_cast<double>(info.n_params) * 1e-6, info.weight_type);
  out("sizes       {} layers, d_model {}, d_ff {}, {} heads, {} kv heads, head_dim {}\n",
      info.n_layers, info.d_model, info.d_ff, info.n_heads, info.n_kv_heads, info.head_dim);
  out("            vocabulary {}, trained context {}\n", info.vocab_size, info.trained_context);
  out("memory      {} at context {}: weights {}, kv cache ({}) {}, activations {}\n",
      human_bytes(static_cast<double>(total_bytes(info))), info.context,
      human_bytes(static_cast<double>(info.weight_bytes)), info.kv_type,
      human_bytes(static_cast<double>(info.kv_bytes)),
      human_bytes(static_cast<double>(info.arena_bytes)));
}

void print_info(const std::filesystem::path& path, const GgufFile& file, const Verdict& verdict) {
  out("file        {}\n", path.string());
  out("format      GGUF version {}, {} bytes ({}), alignment {}, data at {}\n", file.version(),
      file.size_bytes(), human_bytes(static_cast<double>(file.size_bytes())), file.alignment(),
      file.data_offset());
  print_model(verdict);
  out("\nmetadata    {} entries\n", file.metadata().size());
  size_t width = 0;
  for (const GgufEntry& entry : file.metadata()) width = std::max(width, entry.key.size());
  for (const GgufEntry& entry : file.metadata()) {
    const std::string key = escaped(entry.key);
    out("  {:<{}} {}\n", std::string_view(key).substr(1, key.size() - 2), width,
        entry.value.describe());
  }
  out("\ntensors     {}\n", file.tensors().size());
  out("  {:<10} {:>8} {:>16} {:>12}\n", "type", "tensors", "values", "size");
  for (const auto& [type, total] : totals_by_type(file)) {
    out("  {:<10} {:>8} {:>16} {:>12}{}\n", type, total.n_tensors, total.n_values,
        human_bytes(static_cast<double>(total.bytes)),
        total.supported ? "" : "  (tessera cannot compute with it)");
  }
}

int info(const InfoOptions& flags, Action& action) {
  const std::filesystem::path path = resolve_model(flags.file);
  action.model_path = path.string();
  const GgufFile file = GgufFile::open(path);
  const Verdict verdict = try_load(flags, path);
  if (flags.json) {
    print_info_json(path, file, verdict);
  } else {
    print_info(path, file, verdict);
  }
  flush_out();
  if (verdict.refusal) throw Error(*verdict.refusal);  // listed, but with the exit code of `run`
  return kExitOk;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<InfoOptions>();
  CLI::App* command = add_command(
      app, action, "info", "Show what a model file holds, whether it runs here and what it needs",
      "  tessera info model.gguf\n"
      "  tessera info model.gguf --ctx 8192\n"
      "  tessera info model.gguf --json | jq .memory",
      [flags, &action] { return info(*flags, action); });
  command->add_option("FILE", flags->file, "A GGUF file, or 'default'")->required()->type_name("");
  command
      ->add_option("-c,--ctx", flags->context,
                   "Tokens of context for the memory estimate; 0: the model's own, at most 4096")
      ->check(integer_between(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--kv-type", flags->kv_type, "Type of the key and value cache")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print one object: everything in the file but the data");
}

}  // namespace tessera::cli
