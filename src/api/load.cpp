#include <algorithm>
#include <utility>

#include "api/devices.hpp"
#include "api/gguf_tokenizer.hpp"
#include "api/model_impl.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "models/llama_gguf.hpp"
#include "ops/matmul/matmul.hpp"

namespace tessera {
inline namespace v1 {
namespace {

constexpr int64_t kDefaultContext = 4096;

void check(const LoadOptions& options) {
  const auto require = [](int64_t value, const char* name, int64_t min, int64_t max) {
    if (value < min || value > max) {
      fail(ErrorKind::kInvalidArgument, name, "expected {} to {}, got {}", min, max, value);
    }
  };
  require(options.n_threads, "n_threads", 0, 1024);
  require(options.context, "context", 0, int64_t{1} << 30);
  require(options.max_sessions, "max_sessions", 1, 4096);
  require(options.prefill_chunk, "prefill_chunk", 1, 65536);
}

int64_t choose_context(const LoadOptions& options, const GgufFile& file, int64_t trained_context) {
  if (options.context == 0) return std::min(trained_context, kDefaultContext);
  if (options.context > trained_context) {
    fail(ErrorKind::kInvalidArgument, file.where(),
         "a context of {} tokens was asked for, the model was trained for {}", options.context,
         trained_context);
  }
  return options.context;
}

/// Whether the device has products of q8 activations.
bool multiplies_q8(const KernelTable& table, const Caps& caps) {
  const Matmul::Args product = {.y = Tensor::dense(DType::kF32, {1, 32}),
                                .x = Tensor::dense(DType::kQ8, {1, 32}),
                                .w = Tensor::dense(DType::kQ4_0, {32, 32})};
  return table.find<Matmul>(product, caps) != nullptr;
}

/// Unless told, activations are only quantised where the device has products with them.
Activations choose_activations(const LoadOptions& options, const KernelTable& table,
                               const Caps& caps) {
  switch (options.activations) {
    case ActivationMode::kF32:
      return Activations::kExact;
    case ActivationMode::kQ8:
      return Activations::kQ8;
    case ActivationMode::kAuto:
      break;
  }
  return multiplies_q8(table, caps) ? Activations::kQ8 : Activations::kExact;
}

ModelInfo describe(const Model::Impl& impl, const std::filesystem::path& file,
                   const LoadOptions& options, Activations activations) {
  const ModelFacts& facts = impl.language_model->facts();
  ModelInfo info;
  info.name = impl.file->optional_string("general.name").value_or(file.stem().string());
  info.architecture = facts.architecture;
  info.device = options.device;
  info.device_name = impl.device->caps().name;
  info.n_params = facts.n_params;
  info.file_bytes = static_cast<int64_t>(impl.file->size_bytes());
  info.weight_bytes = facts.weight_bytes;
  info.kv_bytes = impl.engine->kv_bytes();
  info.arena_bytes = impl.engine->arena_bytes();
  info.n_layers = facts.n_layers;
  info.d_model = facts.d_model;
  info.d_ff = facts.d_ff;
  info.n_heads = facts.n_heads;
  info.n_kv_heads = facts.n_kv_heads;
  info.head_dim = facts.head_dim;
  info.vocab_size = facts.vocab_size;
  info.trained_context = facts.trained_context;
  info.context = impl.engine->context();
  info.n_threads = impl.device->caps().parallelism;
  info.weight_type = facts.weight_type;
  const bool quantised = activations == Activations::kQ8 && facts.has_block_weights;
  info.activations = quantised ? "q8" : "f32";
  info.kv_type = options.kv_type == KvType::kF16 ? "f16" : "f32";
  return info;
}

}  // namespace

Model Model::load(const std::filesystem::path& file, const LoadOptions& options) {
  check(options);
  auto impl = std::make_shared<Impl>();
  const DeviceRegistry::Choice choice = device_registry().find(options.device);
  const DeviceOptions device_options = {.n_threads = options.n_threads, .isa = options.isa};
  impl->device = choice.kind->make(choice.index, device_options);
  KernelTable table = choice.kind->make_table(*impl->device, device_options);
  for (const auto& [op, row] : options.force) table.force(op, row);
  if (options.deterministic && impl->device->caps().kind == "webgpu") {
    fail(ErrorKind::kUnsupported, "deterministic", "expected device cpu, got {}", options.device);
  }
  table.deterministic(options.deterministic);

  impl->file = GgufFile::open(file);
  const Activations activations = choose_activations(options, table, impl->device->caps());
  impl->language_model = load_gguf_model(*impl->file, *impl->device, activations);
  if (activations == Activations::kQ8 && impl->language_model->facts().has_block_weights &&
      !options.allow_reference && !multiplies_q8(table, impl->device->caps())) {
    fail(ErrorKind::kUnsupported, "activations",
         "expected auto or f32 on {}, got q8: it has no kernel for products of 8-bit activations",
         options.device);
  }
  impl->tokenizer = read_gguf_tokenizer(*impl->file, options.pretokenizer);

  const int64_t trained_context = impl->language_model->facts().trained_context;
  const EngineOptions engine_options = {
      .context = choose_context(options, *impl->file, trained_context),
      .max_sequences = options.max_sessions,
      .max_step_tokens = options.prefill_chunk,
      .kv_dtype = options.kv_type == KvType::kF16 ? DType::kF16 : DType::kF32,
      .allow_reference = options.allow_reference,
      .trace_tensors = options.trace_tensors};
  impl->engine = std::make_unique<Engine>(*impl->device, std::move(table), *impl->language_model,
                                          engine_options);
  impl->info = describe(*impl, file, options, activations);
  return Model(std::move(impl));
}

const ModelInfo& Model::info() const {
  return impl_->info;
}

std::vector<uint32_t> Model::tokenize(std::string_view text, const TokenizeOptions& options) const {
  AddToken bos = AddToken::kAsFile;
  if (options.add_bos) bos = *options.add_bos ? AddToken::kAlways : AddToken::kNever;
  return impl_->tokenizer->encode(
      text, {.bos = bos, .eos = AddToken::kNever, .parse_special = options.parse_special});
}

std::string Model::detokenize(std::span<const uint32_t> ids) const {
  return replace_invalid_utf8(impl_->tokenizer->decode(ids, {.render_special = true}));
}

std::string Model::piece(uint32_t id) const {
  return impl_->tokenizer->decode({&id, 1}, {.render_special = true});
}

std::vector<uint32_t> Model::Impl::prompt_ids(std::string_view prompt) const {
  return tokenizer->encode(
      prompt, {.bos = AddToken::kAsFile, .eos = AddToken::kNever, .parse_special = true});
}

std::string_view version() {
  return TESSERA_VERSION;
}

}  // namespace v1
}  // namespace tessera
