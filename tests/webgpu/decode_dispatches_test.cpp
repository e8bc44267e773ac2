// Decoding on a GPU is a chain of short dispatches, each of which costs microseconds whatever it
// does: their number is a property worth a test.

#include <unistd.h>

#include <filesystem>

#include "engine/batch.hpp"
#include "models/llama_gguf.hpp"
#include "ops/webgpu_rows.hpp"
#include "support.hpp"
#include "support/tiny_model.hpp"

namespace tessera::webgpu {
namespace {

/// Norm with q, k and v; rotation and what is written to the cache; attention; output with the
/// residual; norm with gate, up and SwiGLU; down with the residual. Where the keys are cut into
/// chunks, one more puts attention together.
constexpr size_t kMaxDispatchesOfLayer = 6, kMaxWithChunks = 7;
constexpr int64_t kPagesOfHeads = 32, kPagesOfChunks = 80;  // of 16 tokens
/// Lookups of the token and of the row that wants logits, norm with the head, argmax.
constexpr size_t kMaxOtherDispatches = 4;

/// Dispatches of a recorded step that decodes one token behind as many as `n_pages` hold.
size_t count_dispatches(const TinyModelOptions& options, int64_t n_pages) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tessera-dispatches-" + std::to_string(::getpid()));
  write_tiny_model(path, options);
  const GgufFile file = GgufFile::open(path);
  std::filesystem::remove(path);
  Gpu gpu;
  KernelTable table;
  add_webgpu_rows(table, gpu.capabilities());
  const auto model = load_gguf_model(file, gpu.device(), Activations::kExact);
  const ModelFacts& facts = model->facts();

  const BatchLimits limits = {.max_tokens = 1,
                              .max_sequences = 1,
                              .max_logit_rows = 1,
                              .max_pages = n_pages,
                              .rope_frequencies = facts.rope_frequencies};
  const Bucket bucket = limits.largest_bucket();
  const auto state = gpu.device().allocate(lay_out(bucket, limits, nullptr).size_bytes);
  std::vector<Tensor> k_pages, v_pages;
  for (int64_t i = 0; i < facts.n_layers; ++i) {
    for (auto* pages : {&k_pages, &v_pages}) {
      pages->push_back(gpu.empty(DType::kF32, {n_pages, facts.n_kv_heads, 16, facts.head_dim}));
    }
  }
  const StepOutputs outputs = {.logits = gpu.empty(DType::kF32, {1, facts.vocab_size}),
                               .greedy_ids = gpu.empty(DType::kU32, {1})};
  const auto forward = [&](Queue& queue) {
    queue.begin();
    model->forward(queue, lay_out(bucket, limits, state.get()).state, {k_pages, v_pages}, outputs);
    return queue.end();
  };
  Arena arena(gpu.device());
  PlanQueue plan(gpu.device(), table, arena);
  forward(plan);
  arena.allocate();
  const auto queue = gpu.device().make_queue(table, arena);
  const auto step = forward(*queue);
  return static_cast<const GpuStep&>(*step).dispatches.size();
}

TEST(DecodeDispatches, ALayerTakesFew) {
  TESSERA_NEEDS_ADAPTER();
  for (const DType dtype : {DType::kF32, DType::kQ4_1}) {
    for (const auto& [n_pages, most] : {std::pair(kPagesOfHeads, kMaxDispatchesOfLayer),
                                        std::pair(kPagesOfChunks, kMaxWithChunks)}) {
      TinyModelOptions options;
      options.dtype = dtype;
      options.n_layers = 1;
      const size_t one = count_dispatches(options, n_pages);
      options.n_layers = 3;
      const size_t three = count_dispatches(options, n_pages);
      const size_t of_layer = (three - one) / 2;
      EXPECT_EQ(of_layer * 2, three - one);
      EXPECT_LE(of_layer, most) << name(dtype) << ", " << n_pages << " pages";
      EXPECT_LE(one - of_layer, kMaxOtherDispatches) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace tessera::webgpu
