// The reader on well-formed files. Facts about tests/data/good.gguf come from its generator,
// tools/make_hostile_files.py; those about the default model from gguf-py.

#include "formats/gguf.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "base/utf8.hpp"
#include "formats/ggml_types.hpp"
#include "formats/gguf_writer.hpp"
#include "formats/text.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

const std::filesystem::path kData = std::filesystem::path(TESSERA_TEST_DATA) / "data";
const std::filesystem::path kHostile = std::filesystem::path(TESSERA_TEST_DATA) / "hostile";

template <typename Action>
std::string error_of(ErrorKind kind, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Gguf, ReadsGoodFile) {
  const GgufFile file = GgufFile::open(kData / "good.gguf");
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.alignment(), 32U);
  EXPECT_EQ(file.metadata().size(), 20U);
  EXPECT_EQ(file.tensors().size(), 11U);
  EXPECT_EQ(file.size_bytes(), std::filesystem::file_size(kData / "good.gguf"));
  EXPECT_EQ(file.metadata().front().key, "general.architecture");
  EXPECT_EQ(file.require_string("general.architecture"), "llama");
  EXPECT_EQ(file.require_int("llama.embedding_length", 1, 1000), 32);
  EXPECT_FLOAT_EQ(
      static_cast<float>(file.require_float("llama.attention.layer_norm_rms_epsilon", 1e-12, 1.0)),
      1e-5F);
  EXPECT_FALSE(file.require_bool("tokenizer.ggml.add_bos_token"));
  const auto tokens = file.require_strings("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 265U);
  EXPECT_EQ(tokens[2], "<|im_end|>");
  EXPECT_EQ(tokens[3 + 'a'], "a");
  EXPECT_EQ(tokens[3 + ' '], "\xC4\xA0");
  const auto types = file.require_ints("tokenizer.ggml.token_type", 1, 6);
  ASSERT_EQ(types.size(), 265U);
  EXPECT_EQ(types[2], 3);
  EXPECT_EQ(types[264], 1);

  const GgufTensor& gate = file.require_tensor("blk.0.ffn_gate.weight", {64, 32});
  EXPECT_EQ(gate.dtype, DType::kQ8_0);
  EXPECT_EQ(gate.ggml_type_name, "Q8_0");
  EXPECT_EQ(gate.bytes.size(), 64U * 34U);
  EXPECT_EQ(file.find_tensor("blk.0.ffn_gate"), nullptr);
  EXPECT_EQ(file.find("llama.block"), nullptr);
}

TEST(Gguf, StaysValidWhenMoved) {
  GgufFile file = GgufFile::open(kData / "good.gguf");
  const GgufFile moved = std::move(file);
  EXPECT_EQ(moved.require_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(moved.require_strings("tokenizer.ggml.merges")[1], "h e");
}

TEST(Gguf, ReadsVersion2) {
  const MappedFile map = MappedFile::open(kData / "good_small.gguf");
  std::vector<std::byte> bytes(map.bytes().begin(), map.bytes().end());
  bytes[4] = std::byte{2};
  EXPECT_EQ(GgufFile::parse(bytes, "v2").version(), 2U);
}

TEST(Gguf, OpenSaysWhatCannotBeOpened) {
  const std::string text =
      error_of(ErrorKind::kIo, [] { GgufFile::open(kData / "no_such_file.gguf"); });
  EXPECT_NE(text.find("no_such_file.gguf"), std::string::npos) << text;
  error_of(ErrorKind::kIo, [] { GgufFile::open(kData); });
}

/// A file with one value of every type.
std::vector<std::byte> all_types() {
  GgufWriter writer;
  writer.add("u8", {.type = GgufType::kU8, .data = uint64_t{200}});
  writer.add("i8", {.type = GgufType::kI8, .data = int64_t{-128}});
  writer.add("u16", {.type = GgufType::kU16, .data = uint64_t{65535}});
  writer.add("i16", {.type = GgufType::kI16, .data = int64_t{-32768}});
  writer.add_u32("u32", 4000000000U);
  writer.add_i32("i32", -7);
  writer.add_f32("f32", 0.1F);
  writer.add_bool("bool", true);
  writer.add_string("string", "h\xC3\xA9 \n");
  writer.add_u64("u64", std::numeric_limits<uint64_t>::max());
  writer.add("i64", {.type = GgufType::kI64, .data = std::numeric_limits<int64_t>::min()});
  writer.add_f64("f64", 0.1);
  writer.add_f32("nan", std::numeric_limits<float>::quiet_NaN());
  writer.add_strings("strings", std::array<std::string, 3>{"a", "", "ccc"});
  writer.add_i32s("i32s", std::array<int32_t, 3>{1, -2, 3});
  writer.add_f32s("f32s", std::array<float, 2>{1.5F, -0.25F});
  writer.add_strings("empty", {});
  const std::array<std::byte, 2> flags = {std::byte{1}, std::byte{0}};
  GgufArray bools;
  bools.element_type = GgufType::kBool;
  bools.size = flags.size();
  bools.bytes = flags;
  writer.add("bools", {.type = GgufType::kArray, .data = bools});
  return writer.to_bytes();
}

TEST(Gguf, RoundTripsEveryType) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto bytes = all_types();
  const GgufFile file = GgufFile::parse(bytes, "types");
  EXPECT_EQ(file.metadata().size(), 18U);
  EXPECT_EQ(file.require_int("u8", kMin, kMax), 200);
  EXPECT_EQ(file.require_int("i8", kMin, kMax), -128);
  EXPECT_EQ(file.require_int("u16", kMin, kMax), 65535);
  EXPECT_EQ(file.require_int("i16", kMin, kMax), -32768);
  EXPECT_EQ(file.require_int("u32", kMin, kMax), 4000000000);
  EXPECT_EQ(file.require_int("i32", kMin, kMax), -7);
  EXPECT_EQ(file.require_int("i64", kMin, kMax), kMin);
  EXPECT_EQ(file.require_float("f32", 0, 1), double{0.1F});
  EXPECT_EQ(file.require_float("f64", 0, 1), 0.1);
  EXPECT_TRUE(file.require_bool("bool"));
  EXPECT_EQ(file.require_string("string"), "h\xC3\xA9 \n");
  EXPECT_EQ(file.require_strings("strings")[2], "ccc");
  EXPECT_EQ(file.require_ints("i32s", -2, 3), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(file.require_floats("f32s"), (std::vector<float>{1.5F, -0.25F}));
  EXPECT_TRUE(file.require_strings("empty").empty());
  const auto& bools = std::get<GgufArray>(file.find("bools")->data);
  EXPECT_TRUE(std::get<bool>(bools.at(0).data));
  EXPECT_FALSE(std::get<bool>(bools.at(1).data));
  EXPECT_EQ(file.find("u64")->describe(), "u64 18446744073709551615");
  EXPECT_EQ(file.find("string")->describe(), "string \"h\xC3\xA9 \\x0A\"");
  EXPECT_EQ(file.find("strings")->describe(), "array of 3 string");
}

TEST(Gguf, GettersNameKeyExpectationAndValue) {
  const auto bytes = all_types();
  const GgufFile file = GgufFile::parse(bytes, "types");
  constexpr ErrorKind kInvalid = ErrorKind::kInvalidFile;
  EXPECT_EQ(error_of(kInvalid, [&] { file.require_int("none", 1, 9); }),
            "types: metadata key \"none\" is missing, expected an integer from 1 to 9");
  EXPECT_EQ(error_of(kInvalid, [&] { file.require_int("u8", 1, 199); }),
            "types: metadata key \"u8\" is u8 200, expected an integer from 1 to 199");
  EXPECT_EQ(
      error_of(kInvalid, [&] { file.require_int("string", 0, 1); }),
      "types: metadata key \"string\" is string \"h\xC3\xA9 \\x0A\", expected an integer from 0 "
      "to 1");
  EXPECT_EQ(error_of(kInvalid, [&] { file.require_float("nan", -1e300, 1e300); }),
            "types: metadata key \"nan\" is f32 nan, expected a float from -1e+300 to 1e+300");
  EXPECT_EQ(
      error_of(kInvalid, [&] { file.require_ints("i32s", 0, 5); }),
      "types: metadata key \"i32s\" is i32 -2 at index 1, expected an array of integers from 0 "
      "to 5");
  // An unsigned value beyond int64_t is outside every range.
  error_of(kInvalid, [&] { file.require_int("u64", 0, std::numeric_limits<int64_t>::max()); });
  error_of(kInvalid, [&] { file.require_float("u8", 0, 1000); });
  error_of(kInvalid, [&] { file.require_bool("u8"); });
  error_of(kInvalid, [&] { file.require_string("u8"); });
  error_of(kInvalid, [&] { file.require_strings("i32s"); });
  error_of(kInvalid, [&] { file.require_floats("i32s"); });
  error_of(kInvalid, [&] { file.require_ints("strings", 0, 1); });
  // Optional keys may be absent, not wrong.
  EXPECT_EQ(file.optional_int("none", 0, 1), std::nullopt);
  EXPECT_EQ(file.optional_float("none", 0, 1), std::nullopt);
  EXPECT_EQ(file.optional_bool("none"), std::nullopt);
  EXPECT_EQ(file.optional_string("none"), std::nullopt);
  EXPECT_FALSE(file.optional_strings("none").has_value());
  EXPECT_EQ(file.optional_ints("none", 0, 1), std::nullopt);
  EXPECT_EQ(file.optional_floats("none"), std::nullopt);
  error_of(kInvalid, [&] { (void)file.optional_int("string", 0, 1); });
}

TEST(Gguf, RequireTensorNamesTheFault) {
  const GgufFile file = GgufFile::open(kData / "good.gguf");
  std::string text = error_of(ErrorKind::kInvalidFile, [&] {
    file.require_tensor("output.weight", {265, 32});
  });
  EXPECT_NE(text.find("tensor \"output.weight\" of shape [265, 32] is missing"), std::string::npos)
      << text;
  text = error_of(ErrorKind::kInvalidFile, [&] {
    file.require_tensor("blk.0.attn_k.weight", {32, 16});
  });
  EXPECT_NE(text.find("has shape [16, 32], expected [32, 16]"), std::string::npos) << text;
}

TEST(Gguf, ListsTensorsThatCannotBeComputedWith) {
  const GgufFile file = GgufFile::open(kHostile / "model" / "type_i32.gguf");
  const GgufTensor* tensor = file.find_tensor("blk.0.attn_q.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype, DType::kNone);
  EXPECT_EQ(tensor->ggml_type, 26U);
  EXPECT_EQ(tensor->ggml_type_name, "I32");
  EXPECT_EQ(tensor->bytes.size(), 256U);
  const std::string text = error_of(ErrorKind::kUnsupported, [&] {
    file.require_tensor("blk.0.attn_q.weight", {8, 8});
  });
  for (const char* part : {"blk.0.attn_q.weight", "I32 (26)", "Q4_K"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(GgmlTypes, AgreeWithDTypes) {
  int n_supported = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const GgmlType* type = find_ggml_type(id);
    if (type == nullptr) continue;
    EXPECT_EQ(type->id, id);
    if (type->dtype == DType::kNone) continue;
    ++n_supported;
    EXPECT_EQ(type->block_size, info(type->dtype).block_size) << type->name;
    EXPECT_EQ(type->block_bytes, info(type->dtype).block_bytes) << type->name;
    EXPECT_EQ(ggml_type_of(type->dtype), type);
  }
  EXPECT_EQ(n_supported, 13);
  EXPECT_EQ(ggml_type_of(DType::kNone), nullptr);
  EXPECT_EQ(ggml_type_of(DType::kQ8), nullptr);
}

TEST(Gguf, ReadsEveryTensorType) {
  // Written by tools/make_hostile_files.py: one block of each type, named after its number.
  const GgufFile file =
      GgufFile::open(std::filesystem::path(TESSERA_TEST_DATA) / "fuzz/corpus/gguf/every_type.gguf");
  EXPECT_EQ(file.alignment(), 8U);
  EXPECT_EQ(file.tensors().size(), 14U);
  int n_supported = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    EXPECT_EQ(tensor.name, fmt::format("t{}", tensor.ggml_type));
    const DTypeInfo& type = info(tensor.dtype);
    EXPECT_EQ(tensor.bytes.front(), static_cast<std::byte>(tensor.ggml_type));
    if (tensor.dtype == DType::kNone) continue;
    ++n_supported;
    EXPECT_EQ(tensor.shape, (Shape{type.block_size}));
    EXPECT_EQ(tensor.bytes.size(), static_cast<size_t>(type.block_bytes));
    std::string upper(type.name);
    for (char& letter : upper) letter = static_cast<char>(std::toupper(letter));
    EXPECT_EQ(tensor.ggml_type_name, upper);
  }
  EXPECT_EQ(n_supported, 13);
}

TEST(Text, Utf8AndQuoting) {
  EXPECT_TRUE(is_valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\xB8"));
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3\xC3"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << printable(bad);
  }
  EXPECT_EQ(printable("a\"b\\c\n\x7F\xC3\xA9\xFF"), "\"a\\\"b\\\\c\\x0A\\x7F\xC3\xA9\\xFF\"");
  EXPECT_EQ(printable("\xC2\x9B"), "\"\\xC2\\x9B\"");  // a control character of terminals
  const std::string cut = printable(std::string(1000, 'x'));
  EXPECT_LT(cut.size(), 140U);
  EXPECT_NE(cut.find("900 bytes more"), std::string::npos) << cut;
}

TEST(Gguf, ReadsTheDefaultModel) {
  const char* path = std::getenv("TESSERA_DEFAULT_MODEL");
  if (path == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "the default model is not here: set TESSERA_DEFAULT_MODEL to its path";
  }
  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.size_bytes(), 98362432U);
  EXPECT_EQ(file.metadata().size(), 33U);
  EXPECT_EQ(file.tensors().size(), 272U);
  EXPECT_EQ(file.data_offset(), 1785664U);
  EXPECT_EQ(file.require_string("general.architecture"), "llama");
  EXPECT_EQ(file.require_int("llama.block_count", 1, 1000), 30);
  EXPECT_EQ(file.require_float("llama.rope.freq_base", 1, 1e9), 1e5);
  EXPECT_EQ(file.require_strings("tokenizer.ggml.tokens").size(), 49152U);
  EXPECT_EQ(file.require_strings("tokenizer.ggml.merges").size(), 48900U);
  EXPECT_EQ(file.require_strings("tokenizer.ggml.tokens")[1], "<|im_start|>");
  std::array<int, kNumDTypes> n_of_type = {};
  int64_t n_parameters = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    ++n_of_type[static_cast<size_t>(tensor.dtype)];
    n_parameters += tensor.shape.count();
  }
  EXPECT_EQ(n_of_type[static_cast<size_t>(DType::kQ8_0)], 1);
  EXPECT_EQ(n_of_type[static_cast<size_t>(DType::kQ4_1)], 210);
  EXPECT_EQ(n_of_type[static_cast<size_t>(DType::kF32)], 61);
  EXPECT_EQ(n_parameters, 134515008);
  const GgufTensor& embedding = file.require_tensor("token_embd.weight", {49152, 576});
  EXPECT_EQ(embedding.offset_bytes, 0U);
  EXPECT_EQ(embedding.bytes[0], std::byte{0x32});
  EXPECT_EQ(embedding.bytes[1], std::byte{0x19});
  const GgufTensor& down = file.require_tensor("blk.0.ffn_down.weight", {576, 1536});
  EXPECT_EQ(file.data_offset() + down.offset_bytes, 31868992U);
}

}  // namespace
}  // namespace tessera
