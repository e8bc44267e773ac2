// The f64 references against figures that can be checked by hand (or, where said, were computed
// with Python's math module from the published formula). PyTorch goldens: goldens_test.cpp.

#include "reference_test.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/all_ops.hpp"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_F(ReferenceTest, SoftmaxOfZeroAndLog2) {
  const Tensor x = f64({1, 2}, {0, std::numbers::ln2});
  const Tensor y = output({1, 2});
  Softmax::reference({.y = y, .x = x});
  expect_close(values(y), {1.0 / 3, 2.0 / 3});
}

TEST_F(ReferenceTest, SoftmaxOfMaskedAndHugeRows) {
  const Tensor x = f32({4, 2}, {-kInfinity, -kInfinity, 1e30f, -kInfinity, kNaN, 0, 3e38f, 3e38f});
  const Tensor y = output({4, 2});
  Softmax::reference({.y = y, .x = x});
  const std::vector<double> got = values(y);
  expect_close({got.begin(), got.begin() + 4}, {0, 0, 1, 0});
  EXPECT_TRUE(std::isnan(got[4]) && std::isnan(got[5]));
  expect_close({got.begin() + 6, got.end()}, {0.5, 0.5});
}

TEST_F(ReferenceTest, ElementwiseAtOne) {
  const Tensor one = f64({1, 1}, {1}), two = f64({1, 1}, {2});
  const Tensor y = output({1, 1});
  Silu::reference({.y = y, .x = one});
  expect_close(values(y), {0.7310585786300049});  // the logistic function at 1
  Swiglu::reference({.y = y, .gate = one, .up = two});
  expect_close(values(y), {1.4621171572600098});
  Gelu::reference({.y = y, .x = one, .kind = GeluKind::kErf});
  expect_close(values(y), {0.8413447460685429});  // the normal distribution at 1
  Gelu::reference({.y = y, .x = one, .kind = GeluKind::kTanh});
  expect_close(values(y), {0.8411919906082768});  // torch.nn.functional.gelu, approximate="tanh"
  Add::reference({.y = y, .a = one, .b = two});
  expect_close(values(y), {3});
  Mul::reference({.y = y, .a = two, .b = two});
  expect_close(values(y), {4});
}

TEST_F(ReferenceTest, RowsBehindLiveStayUntouched) {
  const Tensor x = f32({3, 1}, {1, 2, 3});
  const Tensor y = output({3, 1});
  Add::reference({.y = y, .a = x, .b = x, .live = u32({1}, {2})});
  expect_close(values(y), {2, 4, kUntouched});
  Rmsnorm::reference({.y = y, .x = x, .weight = f32({1}, {5}), .live = u32({1}, {0}), .eps = 0});
  expect_close(values(y), {2, 4, kUntouched});
}

TEST_F(ReferenceTest, NormsByHand) {
  const Tensor y = output({1, 2});
  // Mean square of (3, 4) is 12.5.
  Rmsnorm::reference({.y = y, .x = f32({1, 2}, {3, 4}), .weight = f32({2}, {1, 10}), .eps = 0});
  expect_close(values(y), {3 / std::sqrt(12.5), 40 / std::sqrt(12.5)});
  Rmsnorm::reference({.y = y, .x = f32({1, 2}, {3, 4}), .weight = f32({2}, {1, 1}), .eps = 3.5f});
  expect_close(values(y), {0.75, 1});
  // (1, 5): mean 3, population variance 4.
  Layernorm::reference({.y = y,
                        .x = f32({1, 2}, {1, 5}),
                        .weight = f32({2}, {1, 10}),
                        .bias = f32({2}, {0.5f, 0.5f}),
                        .eps = 0});
  expect_close(values(y), {-0.5, 10.5});
}

// --- products -----------------------------------------------------------------------------------

TEST_F(ReferenceTest, MatmulInBothOrders) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 0, 0, 1});
  const Tensor y = output({2, 2});
  Matmul::reference({.y = y, .x = x, .w = f32({2, 3}, {4, 5, 6, 7, 8, 9})});
  expect_close(values(y), {32, 50, 6, 9});
  Matmul::reference({.y = y,
                     .x = x,
                     .w = f16({3, 2}, {4, 7, 5, 8, 6, 9}),
                     .bias = f32({2}, {100, 200}),
                     .residual = f32({2, 2}, {0.5f, 0, 0, 0.25f}),
                     .order = WeightOrder::kInOut});
  expect_close(values(y), {132.5, 250, 106, 209.25});
}

TEST_F(ReferenceTest, MatmulHonoursStridesAndLive) {
  Tensor x = f32({2, 2}, {1, 2, 99, 99, 3, 4, 99, 99});  // rows of two, 16 bytes apart
  x.stride_bytes[0] = 16;
  const Tensor y = output({2, 1});
  Matmul::reference({.y = y, .x = x, .w = f32({1, 2}, {1, 1})});
  expect_close(values(y), {3, 7});
  const Tensor partial = output({2, 1});
  Matmul::reference({.y = partial, .x = x, .w = f32({1, 2}, {1, 1}), .live = u32({1}, {1})});
  expect_close(values(partial), {3, kUntouched});
}

TEST_F(ReferenceTest, MatmulOfNothingIsTheBias) {
  const Tensor y = output({1, 2});
  Matmul::reference({.y = y, .x = f32({1, 0}, {}), .w = f32({2, 0}, {}), .bias = f32({2}, {1, 2})});
  expect_close(values(y), {1, 2});
}

TEST_F(ReferenceTest, MatmulInt4TakesTheLowestNibbleFirst) {
  // One word, nibbles 0 to 7: W = [[0 1 2 3], [4 5 6 7]]. Groups of three run across its rows.
  const Tensor w = u32({1}, {0x76543210});
  Tensor flat = Tensor::dense(DType::kInt4Flat, {1, 8}, w.buffer);
  const Tensor y = output({2, 4});
  MatmulInt4::reference({.y = y,
                         .x = f32({2, 2}, {1, 0, 0, 1}),
                         .w = flat,
                         .scales = f32({3}, {1, 10, 100}),
                         .zeros = f32({3}, {0, 1, 6.5f}),
                         .group_size = 3});
  expect_close(values(y), {0, 1, 2, 20, 30, 40, -50, 50});
}

// --- q8 -----------------------------------------------------------------------------------------

/// A block whose scale is 1, so that rounding shows: halves go to the even neighbour.
std::vector<float> halves() {
  std::vector<float> x(32, 0.0f);
  const std::vector<float> head = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -126.5f, 3.25f};
  std::copy(head.begin(), head.end(), x.begin());
  return x;
}
constexpr std::array<int, 8> kRoundedHalves = {127, 0, 2, 2, 0, -2, -126, 3};

TEST_F(ReferenceTest, QuantizeRowsByHand) {
  std::vector<float> x = halves();
  for (const float value : halves()) x.push_back(-2 * value);
  x.insert(x.end(), 32, 0.0f);
  x.insert(x.end(), 32, 0.0f);
  x[100] = kInfinity;
  x.insert(x.end(), 32, 1e-40f);  // 127 / max overflows
  const Tensor y = make(DType::kQ8, {1, 160}, std::vector<char>(200, 'x'));
  QuantizeRows::reference({.y = y, .x = f32({1, 160}, x)});
  const float* scales = host_data<float>(y);
  const float* sums = scales + 5;
  const auto* q = reinterpret_cast<const int8_t*>(sums + 5);
  EXPECT_EQ(scales[0], 1);
  EXPECT_EQ(sums[0], 127 + 2 + 2 - 2 - 126 + 3);
  EXPECT_EQ(scales[1], 2);
  EXPECT_EQ(sums[1], -2 * (127 + 2 + 2 - 2 - 126 + 3));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(q[i], kRoundedHalves[i]) << i;
    EXPECT_EQ(q[32 + i], -kRoundedHalves[i]) << i;
  }
  EXPECT_EQ(scales[2], 0);
  EXPECT_EQ(sums[2], 0);
  EXPECT_TRUE(std::isnan(scales[3]) && std::isnan(sums[3]));
  EXPECT_EQ(scales[4], 0);
  for (int i = 64; i < 160; ++i) EXPECT_EQ(q[i], 0) << i;
}

/// 32 ones in q8_0: one block of scale 1.
std::vector<unsigned char> ones_q8_0() {
  std::vector<unsigned char> block(34, 1);
  const uint16_t one = f32_to_f16(1);
  std::memcpy(block.data(), &one, sizeof one);
  return block;
}

TEST_F(ReferenceTest, FusedLinearRoundsActivationsOnlyForBlockFormats) {
  // x = +-1 has mean square 1, so the normalised row is the weight of the norm up to signs that
  // the weight takes back; exact and rounded sums then differ by the halves.
  std::vector<float> x(32, 1.0f);
  const Tensor norm_weight = f32({32}, halves());
  const Tensor blocks = make(DType::kQ8_0, {1, 32}, ones_q8_0());
  const Tensor plain = f32({1, 32}, std::vector<float>(32, 1.0f));
  const double exact = 127 + 0.5 + 1.5 + 2.5 - 0.5 - 1.5 - 126.5 + 3.25;
  const double rounded = 127 + 0 + 2 + 2 + 0 - 2 - 126 + 3;
  const Tensor y0 = output({1, 1}), y1 = output({1, 1}), y2 = output({1, 1});
  NormLinearGroup::Args args = {.y = {y0, y1, y2},
                                .x = f32({1, 32}, x),
                                .norm_weight = norm_weight,
                                .w = {blocks, plain, blocks},
                                .bias = {Tensor{}, f32({1}, {10})},
                                .eps = 0,
                                .activations = Activations::kQ8};
  NormLinearGroup::reference(args);
  expect_close(values(y0), {rounded});
  expect_close(values(y1), {exact + 10});
  expect_close(values(y2), {rounded});
  args.activations = Activations::kExact;
  NormLinearGroup::reference(args);
  expect_close(values(y0), {exact});

  LinearResidual::reference({.y = y0,
                             .x = norm_weight.reshaped({1, 32}),
                             .w = blocks,
                             .residual = f32({1, 1}, {1000}),
                             .activations = Activations::kQ8});
  expect_close(values(y0), {1000 + rounded});

  const Tensor q8 = make(DType::kQ8, {1, 32}, std::vector<char>(40));
  QuantizeRows::reference({.y = q8, .x = norm_weight.reshaped({1, 32})});
  Matmul::reference({.y = y0, .x = q8, .w = blocks});
  expect_close(values(y0), {rounded});
}

TEST_F(ReferenceTest, GatedMlpByHand) {
  const Tensor y = output({1, 1});
  // LayerNorm of (1, 5) is (-1, 1) with unit weight; plus bias (2, 0): (1, 1).
  NormGateUpSwiglu::reference({.y = y,
                               .x = f32({1, 2}, {1, 5}),
                               .norm_weight = f32({2}, {1, 1}),
                               .gate = f32({1, 2}, {0.25f, 0.75f}),
                               .up = f32({1, 2}, {1, 1}),
                               .norm_bias = f32({2}, {2, 0}),
                               .norm = NormKind::kLayer,
                               .eps = 0});
  expect_close(values(y), {1.4621171572600098});
  // silu(1) 2 = 1.4621..., times the weights (1, 10), plus the residual.
  const Tensor y2 = output({1, 2});
  MatmulResidualSwigluA::reference({.y = y2,
                                    .g = f32({1, 1}, {1}),
                                    .u = f32({1, 1}, {2}),
                                    .w = f32({1, 2}, {1, 10}),
                                    .residual = f32({1, 2}, {0, 1})});
  expect_close(values(y2), {1.4621171572600098, 15.621171572600098});
}

TEST_F(ReferenceTest, GatherRowsDecodesAndZeroesUnknownIds) {
  const Tensor y = output({4, 2});
  GatherRows::reference({.y = y,
                         .table = f16({2, 2}, {1, 2, 3, 4}),
                         .ids = u32({4}, {1, 2, 0, 1}),
                         .live = u32({1}, {3})});
  expect_close(values(y), {3, 4, 0, 0, 1, 2, kUntouched, kUntouched});
}

TEST_F(ReferenceTest, ConvertRoundsToNearestEven) {
  // Halfway between neighbours of f16 (spacing 2^-10 at 1) and of bf16 (2^-7).
  const Tensor x = f32({1, 4}, {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f});
  const Tensor half = make(DType::kF16, {1, 4}, std::vector<uint16_t>(4));
  const Tensor brain = make(DType::kBF16, {1, 4}, std::vector<uint16_t>(4));
  Convert::reference({.y = half, .x = x});
  Convert::reference({.y = brain, .x = x});
  EXPECT_EQ(values<uint16_t>(half), (std::vector<uint16_t>{0x3c00, 0x3c02, 0x3c04, 0x3c0c}));
  EXPECT_EQ(values<uint16_t>(brain), (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f80, 0x3f82}));
}

// --- sampling -----------------------------------------------------------------------------------

TEST_F(ReferenceTest, ArgmaxOfTiesAndNaN) {
  const Tensor x = f32({4, 3}, {1, 7, 7, kNaN, -kInfinity, kNaN, kNaN, kNaN, kNaN, 5, kNaN, 6});
  const Tensor ids = u32({4}, {9, 9, 9, 9});
  Argmax::reference({.ids = ids, .x = x});
  EXPECT_EQ(values<uint32_t>(ids), (std::vector<uint32_t>{1, 1, 0, 2}));
}

TEST_F(ReferenceTest, TopKOfTiesAndNaN) {
  const Tensor x = f32({2, 5}, {3, kNaN, 7, 3, 7, kNaN, -kInfinity, kNaN, 0, kNaN});
  const Tensor top = output({2, 3});
  const Tensor ids = u32({2, 3}, std::vector<uint32_t>(6, 9));
  TopK::reference({.values = top, .ids = ids, .x = x});
  EXPECT_EQ(values<uint32_t>(ids), (std::vector<uint32_t>{2, 4, 0, 3, 1, 0}));
  const std::vector<double> got = values(top);
  EXPECT_EQ((std::vector<double>{got.begin(), got.begin() + 5}),
            (std::vector<double>{7, 7, 3, 0, -kInfinity}));
  EXPECT_TRUE(std::isnan(got[5]));
}

}  // namespace
}  // namespace tessera
