#include <gtest/gtest.h>

#include <functional>

#include "api/model_impl.hpp"
#include "api/tiny_file.hpp"
#include "base/error.hpp"

namespace tessera {
namespace {

void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& action) {
  try {
    action();
    FAIL() << "no error; expected one that says " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Load, TellsWhatItLoaded) {
  TinyModelOptions tiny;
  tiny.dtype = DType::kQ4_1;
  const TinyFile file(tiny);
  const ModelInfo info = file.load({.max_sessions = 2}).info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.name, "tiny random llama");
  EXPECT_EQ(info.n_layers, 2);
  EXPECT_EQ(info.d_model, 64);
  EXPECT_EQ(info.d_ff, 128);
  EXPECT_EQ(info.n_heads, 4);
  EXPECT_EQ(info.n_kv_heads, 2);
  EXPECT_EQ(info.head_dim, 16);
  EXPECT_EQ(info.context, 256);
  EXPECT_EQ(info.trained_context, 256);
  EXPECT_EQ(info.vocab_size, static_cast<int64_t>(tiny_vocabulary().tokens.size()));
  EXPECT_EQ(info.weight_type, "q4_1");
  EXPECT_EQ(info.activations, "q8");
  EXPECT_EQ(info.kv_type, "f16");
  EXPECT_EQ(info.n_threads, 2);
  // 2 sessions of 8 pages of 32 tokens; 2 layers of keys and values, 2 heads of 16 values, f16.
  EXPECT_EQ(info.kv_bytes, 2 * 8 * 32 * 2 * 2 * 2 * 16 * 2);
  const int64_t per_layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64 + 2 * 64;
  EXPECT_EQ(info.n_params, info.vocab_size * 64 + 2 * per_layer + 64);
  EXPECT_EQ(info.file_bytes, static_cast<int64_t>(std::filesystem::file_size(file.path())));
  EXPECT_GT(info.arena_bytes, 0);
}

TEST(Load, PlainWeightsAlwaysSeeExactActivations) {
  const TinyFile file;
  EXPECT_EQ(file.load().info().activations, "f32");
  EXPECT_EQ(file.load().info().weight_type, "f32");
}

TEST(Load, RefusesOptionsOutOfRange) {
  const TinyFile file;
  const auto load = [&](const LoadOptions& options) {
    return [&file, options] { file.load(options); };
  };
  expect_error(ErrorKind::kInvalidArgument, "n_threads", load({.n_threads = -1}));
  expect_error(ErrorKind::kInvalidArgument, "context", load({.context = -1}));
  expect_error(ErrorKind::kInvalidArgument, "256", load({.context = 257}));
  expect_error(ErrorKind::kInvalidArgument, "max_sessions", load({.max_sessions = 0}));
  expect_error(ErrorKind::kInvalidArgument, "prefill_chunk", load({.prefill_chunk = 0}));
  expect_error(ErrorKind::kInvalidArgument, "isa", load({.isa = "mmx"}));
  expect_error(ErrorKind::kInvalidArgument, "no_such_op", load({.force = {{"no_such_op", "x"}}}));
  expect_error(ErrorKind::kIo, "nowhere", [] { Model::load("/nowhere.gguf"); });
}

TEST(Load, OpsThatWouldRunOnTheReferenceAreListedAndRefused) {
  const TinyFile file;
  LoadOptions options = {.n_threads = 1,
                         .force = {{"argmax", "reference"}, {"rmsnorm", "reference"}}};
  expect_error(ErrorKind::kUnsupported, "argmax, rmsnorm",
               [&] { Model::load(file.path(), options); });
  options.allow_reference = true;
  Model::load(file.path(), options);
}

TEST(Load, TokenizesBothWays) {
  const Model model = TinyFile().load();
  const std::vector<uint32_t> plain = model.tokenize("<|im_start|>hi");
  const std::vector<uint32_t> special = model.tokenize("<|im_start|>hi", {.parse_special = true});
  EXPECT_GT(plain.size(), special.size());
  EXPECT_EQ(special[0], 1u);
  EXPECT_EQ(model.detokenize(special), "<|im_start|>hi");
  EXPECT_EQ(model.detokenize(plain), "<|im_start|>hi");
  EXPECT_EQ(model.tokenize("hi", {.add_bos = true})[0], 1u);
  const uint32_t lone = 3 + 0xF0;  // tokens 3 to 258 are the bytes
  EXPECT_EQ(model.piece(lone), "\xF0");
  EXPECT_EQ(model.detokenize({&lone, 1}), "\uFFFD");
  expect_error(ErrorKind::kInvalidArgument, "", [&] { model.piece(100000); });
}

TEST(Load, PlansRecordsWithCosts) {
  const Model model = TinyFile().load();
  double flops = 0;
  for (const OpRecord& record : plan_records(model, 4, 10)) {
    if (!record.composed) flops += record.cost.flops;
  }
  EXPECT_GT(flops, 0);
}

}  // namespace
}  // namespace tessera
