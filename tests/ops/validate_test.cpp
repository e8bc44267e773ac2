// What the contracts refuse, and in which words; and what they say an op costs. No tensor here has
// memory: both serve planning.

#include <gtest/gtest.h>

#include "ops/all_ops.hpp"

namespace tessera {
namespace {

Tensor f32(const Shape& shape) {
  return Tensor::dense(DType::kF32, shape);
}
Tensor of(DType dtype, const Shape& shape) {
  return Tensor::dense(dtype, shape);
}

template <typename Op>
std::string refusal(const typename Op::Args& args) {
  try {
    Op::validate(args);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

/// All of the parts must be in the text.
void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
  }
}

TEST(ValidateTest, MatmulSaysWhatWasExpected) {
  Matmul::Args args = {.y = f32({2, 8}), .x = f32({2, 64}), .w = f32({8, 64})};
  EXPECT_EQ(refusal<Matmul>(args), "accepted");
  args.w = f32({64, 8});
  expect_says(refusal<Matmul>(args), {"matmul.w", "[*, 64]", "got [64, 8]", "x has 64 columns"});
  args.order = WeightOrder::kInOut;
  EXPECT_EQ(refusal<Matmul>(args), "accepted");
  args.w = of(DType::kQ8_0, {64, 32});
  expect_says(refusal<Matmul>(args), {"matmul.w", "got q8_0", "[out_features, in_features]"});
  args = {.y = f32({2, 8}), .x = of(DType::kQ8, {2, 64}), .w = of(DType::kQ4_0, {8, 64})};
  EXPECT_EQ(refusal<Matmul>(args), "accepted");
  args.w = of(DType::kF16, {8, 64});
  expect_says(refusal<Matmul>(args), {"matmul.x", "got q8", "exact"});
  args.x = of(DType::kF64, {2, 64});
  expect_says(refusal<Matmul>(args), {"matmul.x", "got f64"});
  args.x = f32({2, 64});
  args.y = f32({2, 9});
  expect_says(refusal<Matmul>(args), {"matmul.y", "[2, 8]", "got [2, 9]"});
  args.y = f32({2, 8});
  args.bias = f32({2});
  expect_says(refusal<Matmul>(args), {"matmul.bias", "[8]", "got [2]"});
  args.bias = {};
  args.live = of(DType::kI32, {1});
  expect_says(refusal<Matmul>(args), {"matmul.live", "expected u32", "got i32"});
}

TEST(ValidateTest, BlockFormatsNeedWholeBlocks) {
  Tensor w = of(DType::kQ4_K, {8, 256});
  w.shape = {8, 64};
  expect_says(refusal<Matmul>({.y = f32({2, 8}), .x = f32({2, 64}), .w = w}),
              {"matmul.w", "q4_k", "256", "got 64", "f16"});
  Tensor table = w;
  expect_says(refusal<GatherRows>({.y = f32({1, 64}), .table = table, .ids = of(DType::kU32, {1})}),
              {"gather_rows.table", "256", "got 64"});
  expect_says(refusal<Convert>({.y = f32({8, 64}), .x = w}), {"convert.x", "256", "got 64"});
  expect_says(refusal<QuantizeRows>({.y = of(DType::kQ8, {1, 32}), .x = f32({1, 48})}),
              {"quantize_rows.x", "32", "got 48"});
}

TEST(ValidateTest, Int4CountsWordsAndGroups) {
  MatmulInt4::Args args = {.y = f32({1, 3}),
                           .x = f32({1, 5}),
                           .w = of(DType::kInt4Flat, {1, 16}),  // 15 weights: two words
                           .scales = f32({4}),
                           .zeros = f32({4}),
                           .group_size = 4};
  EXPECT_EQ(refusal<MatmulInt4>(args), "accepted");
  args.group_size = 0;
  expect_says(refusal<MatmulInt4>(args), {"group_size", "got 0"});
  args.group_size = 5;
  expect_says(refusal<MatmulInt4>(args), {"matmul_int4.scales", "[3]", "got [4]"});
  args.w = of(DType::kInt4Flat, {1, 24});
  expect_says(refusal<MatmulInt4>(args), {"matmul_int4.w", "[1, 16]", "got [1, 24]"});
}

TEST(ValidateTest, FusedLinears) {
  NormLinearGroup::Args group = {.y = {f32({2, 8}), f32({2, 4}), {}},
                                 .x = f32({2, 32}),
                                 .norm_weight = f32({32}),
                                 .w = {f32({8, 32}), f32({4, 32}), {}}};
  EXPECT_EQ(refusal<NormLinearGroup>(group), "accepted");
  group.norm_bias = f32({32});
  expect_says(refusal<NormLinearGroup>(group), {"norm_bias", "NormKind::kLayer"});
  group.norm = NormKind::kLayer;
  EXPECT_EQ(refusal<NormLinearGroup>(group), "accepted");
  group.w[1] = {};
  expect_says(refusal<NormLinearGroup>(group), {"norm_linear_group.w1", "from the back"});
  group.y[1] = {};
  EXPECT_EQ(refusal<NormLinearGroup>(group), "accepted");
  group.w[2] = f32({4, 32});
  expect_says(refusal<NormLinearGroup>(group), {"norm_linear_group.w2", "from the back"});
  group.w[0] = {};
  expect_says(refusal<NormLinearGroup>(group), {"norm_linear_group.w0", "got none"});
  expect_says(refusal<NormGateUpSwiglu>({.y = f32({2, 8}),
                                         .x = f32({2, 32}),
                                         .norm_weight = f32({32}),
                                         .gate = f32({8, 32}),
                                         .up = f32({9, 32})}),
              {"norm_gate_up_swiglu.up", "8", "got 9"});
  expect_says(refusal<LinearResidual>(
                  {.y = f32({2, 8}), .x = f32({2, 32}), .w = f32({8, 32}), .residual = {}}),
              {"linear_residual.residual", "[2, 8]", "got none"});
}

TEST(ValidateTest, HeadsAndRotations) {
  Attention::Args args = {
      .y = f32({2, 6, 64}), .q = f32({2, 6, 64}), .k = f32({5, 4, 64}), .v = f32({5, 4, 64})};
  expect_says(refusal<Attention>(args), {"attention.k", "6 query heads", "got 4", "n_kv_heads"});
  args.k = args.v = f32({5, 3, 64});
  EXPECT_EQ(refusal<Attention>(args), "accepted");
  args.window = -1;
  expect_says(refusal<Attention>(args), {"attention.window", "got -1"});
  Rope::Args rope = {.q = f32({2, 6, 64}), .rotation = f32({2, 33, 2})};
  expect_says(refusal<Rope>(rope), {"rope.rotation", "32 pairs", "got 33"});
  rope.rotation = f32({3, 32, 2});
  expect_says(refusal<Rope>(rope), {"rope.rotation", "[2, *, 2]", "got [3, 32, 2]"});
}

TEST(ValidateTest, PagesFitQueries) {
  PagedAttention::Args args = {.y = f32({2, 6, 64}),
                               .q = f32({2, 6, 64}),
                               .k_pages = of(DType::kF16, {10, 3, 16, 64}),
                               .v_pages = of(DType::kF16, {10, 3, 16, 64}),
                               .positions = of(DType::kU32, {2}),
                               .sequences = of(DType::kI32, {2}),
                               .block_tables = of(DType::kU32, {4, 8})};
  EXPECT_EQ(refusal<PagedAttention>(args), "accepted");
  // 2 tokens x 6 heads x 64, each against 8 pages of 16; 4 sequences x 128 positions of K and V.
  EXPECT_EQ(PagedAttention::cost(args).flops, 4.0 * 2 * 6 * 64 * 128);
  EXPECT_EQ(PagedAttention::cost(args).bytes,
            2.0 * 2 * 6 * 64 * 4 + 4.0 * 128 * 2 * 3 * 64 * 2 + 4 * 8 * 4 + 2 * 4 + 2 * 4);
  args.v_pages = f32({10, 3, 16, 64});
  expect_says(refusal<PagedAttention>(args),
              {"paged_attention.v_pages", "expected f16", "got f32"});
  args.v_pages = args.k_pages;
  args.sequences = of(DType::kU32, {2});
  expect_says(refusal<PagedAttention>(args), {"paged_attention.sequences", "expected i32"});
  args.k_pages = args.v_pages = of(DType::kF16, {10, 3, 0, 64});
  expect_says(refusal<PagedAttention>(args), {"k_pages", "at least one token"});
}

TEST(ValidateTest, RowsWithoutAnAnswer) {
  expect_says(refusal<Argmax>({.ids = of(DType::kU32, {2}), .x = f32({2, 0})}),
              {"argmax.x", "[2, 0]"});
  expect_says(
      refusal<TopK>({.values = f32({2, 6}), .ids = of(DType::kU32, {2, 6}), .x = f32({2, 5})}),
      {"top_k.values", "<= 5", "got k = 6"});
  expect_says(refusal<Rmsnorm>({.y = f32({2, 0}), .x = f32({2, 0}), .weight = f32({0})}),
              {"rmsnorm.x", "at least one value"});
  expect_says(
      refusal<Layernorm>({.y = f32({2, 3}), .x = f32({2, 3}), .weight = f32({3}), .eps = -1}),
      {"layernorm.eps", "got -1", "norm_eps"});
}

TEST(ValidateTest, NoRowsAreFine) {
  EXPECT_EQ(refusal<Matmul>({.y = f32({0, 8}), .x = f32({0, 4}), .w = f32({8, 4})}), "accepted");
  EXPECT_EQ(refusal<Softmax>({.y = f32({0, 8}), .x = f32({0, 8})}), "accepted");
  EXPECT_EQ(refusal<Rmsnorm>({.y = f32({0, 8}), .x = f32({0, 8}), .weight = f32({8})}), "accepted");
  EXPECT_EQ(refusal<Argmax>({.ids = of(DType::kU32, {0}), .x = f32({0, 8})}), "accepted");
}

TEST(CostTest, OfProducts) {
  // 2 x 8 outputs of 64 products; q4_0 stores 64 values in 36 bytes.
  const Cost matmul = Matmul::cost(
      {.y = f32({2, 8}), .x = f32({2, 64}), .w = of(DType::kQ4_0, {8, 64}), .bias = f32({8})});
  EXPECT_EQ(matmul.flops, 2.0 * 2 * 8 * 64);
  EXPECT_EQ(matmul.bytes, 8.0 * 36 + 4 * (2 * 64 + 2 * 8 + 8));
  const Cost group = NormLinearGroup::cost({.y = {f32({2, 8}), f32({2, 4}), {}},
                                            .x = f32({2, 64}),
                                            .norm_weight = f32({64}),
                                            .w = {of(DType::kQ4_0, {8, 64}), f32({4, 64}), {}},
                                            .activations = Activations::kQ8});
  EXPECT_EQ(group.flops, 2.0 * 64 * (4 + 3) + 2.0 * 2 * 12 * 64);
  EXPECT_EQ(group.bytes, 4.0 * (2 * 64 + 64 + 2 * 8 + 2 * 4 + 4 * 64) + 8 * 36);
  const Cost rows = GatherRows::cost(
      {.y = f32({3, 64}), .table = of(DType::kQ4_0, {1000, 64}), .ids = of(DType::kU32, {3})});
  EXPECT_EQ(rows.bytes, 3.0 * (36 + 4 + 256));
}

TEST(CostTest, OfCausalAttention) {
  // Queries at positions 2, 3, 4 against five keys see 3 + 4 + 5 of them; with a window of 2, 6.
  Attention::Args args = {.y = f32({3, 2, 8}),
                          .q = f32({3, 2, 8}),
                          .k = f32({5, 1, 8}),
                          .v = f32({5, 1, 8}),
                          .position_offset = 2};
  EXPECT_EQ(Attention::cost(args).flops, 4.0 * 8 * 2 * 12);
  args.window = 2;
  EXPECT_EQ(Attention::cost(args).flops, 4.0 * 8 * 2 * 6);
  args.window = 0;
  args.causal = false;
  EXPECT_EQ(Attention::cost(args).flops, 4.0 * 8 * 2 * 15);
}

}  // namespace
}  // namespace tessera
