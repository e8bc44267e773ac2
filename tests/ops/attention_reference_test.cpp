// Rotary embeddings and attention in f64, against figures that can be checked by hand.

#include <cmath>
#include <numbers>

#include "ops/all_ops.hpp"
#include "reference_test.hpp"

namespace tessera {
namespace {

// cos and sin of 1 and of 0.01: the angles of position 1 with head_dim 4 and base 10,000.
constexpr double kCos1 = 0.5403023058681398, kSin1 = 0.8414709848078965;
constexpr double kCos001 = 0.9999500004166653, kSin001 = 0.009999833334166664;

TEST_F(ReferenceTest, RotationOfPositionOne) {
  const std::vector<double> frequencies =
      rope_frequencies({.rotary_dim = 4, .base = 1e4, .scaling = {}});
  expect_close(frequencies, {1, 0.01});
  std::vector<float> rotation(8);
  rope_rotation(frequencies, std::vector<uint32_t>{0, 1}, rotation);
  expect_close({rotation.begin(), rotation.end()}, {1, 0, 1, 0, kCos1, kSin1, kCos001, kSin001},
               6e-8);
}

TEST_F(ReferenceTest, RotationOfFarPositionsIsComputedInF64) {
  std::vector<float> rotation(2);
  rope_rotation(std::vector<double>{1.0}, std::vector<uint32_t>{1'000'000}, rotation);
  expect_close({rotation.begin(), rotation.end()}, {0.9367521275331447, -0.3499935021712930}, 6e-8);
}

TEST_F(ReferenceTest, ScaledFrequencies) {
  RopeSpec spec = {
      .rotary_dim = 4, .base = 1e4, .scaling = {.kind = RopeScalingKind::kLinear, .factor = 4}};
  expect_close(rope_frequencies(spec), {0.25, 0.0025});
  // Llama 3.1 8B. Computed with Python from the formula of the published model code.
  spec = {.rotary_dim = 128,
          .base = 500000,
          .scaling = {.kind = RopeScalingKind::kLlama3,
                      .factor = 8,
                      .low_freq_factor = 1,
                      .high_freq_factor = 4,
                      .original_context = 8192}};
  const std::vector<double> f = rope_frequencies(spec);
  ASSERT_EQ(f.size(), 64u);
  expect_close({f[0], f[28]}, {1, 0.003211445994752591}, 1e-15);  // kept
  expect_close({f[29], f[32]}, {0.002166570763503359, 0.0005248461609929547}, 1e-15);
  expect_close({f[35], f[63]}, {9.556212353964683e-05, 3.068925988914511e-07}, 1e-17);  // / 8
}

TEST_F(ReferenceTest, RotationRejectsBadSpecs) {
  const auto message = [](const RopeSpec& spec) -> std::string {
    try {
      rope_frequencies(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message({.rotary_dim = 3, .base = 1e4, .scaling = {}}).find("got 3"),
            std::string::npos);
  EXPECT_NE(message({.rotary_dim = 4, .base = 0, .scaling = {}}).find("rope_theta"),
            std::string::npos);
  RopeSpec spec = {
      .rotary_dim = 4, .base = 1e4, .scaling = {.kind = RopeScalingKind::kLinear, .factor = 0}};
  EXPECT_NE(message(spec).find("got 0"), std::string::npos);
  spec.scaling = {.kind = RopeScalingKind::kLlama3, .low_freq_factor = 4, .high_freq_factor = 4};
  EXPECT_NE(message(spec).find("got 4 and 4"), std::string::npos);
  std::vector<float> target(3);
  EXPECT_THROW(rope_rotation(std::vector<double>{1}, std::vector<uint32_t>{0, 1}, target), Error);
}

TEST_F(ReferenceTest, RopeAtPositionOneInBothPairings) {
  const Tensor rotation = f64({1, 2, 2}, {kCos1, kSin1, kCos001, kSin001});
  const std::vector<double> head = {1, 0, 0, 1, 5};  // the fifth value is behind the rotary part
  const Tensor q = f64({1, 1, 5}, head);
  Rope::reference({.q = q, .rotation = rotation});
  expect_close(values(q), {kCos1, kSin1, -kSin001, kCos001, 5});
  const Tensor q2 = f64({1, 1, 5}, head), k2 = f64({1, 1, 5}, head);
  Rope::reference({.q = q2, .k = k2, .rotation = rotation, .pairing = RopePairing::kHalfSplit});
  expect_close(values(q2), {kCos1, -kSin001, kSin1, kCos001, 5});
  EXPECT_EQ(values(k2), values(q2));
}

// A quarter turn: (a, b) -> (-b, a).
TEST_F(ReferenceTest, RopeKvWriteFillsThePagesOfTheTable) {
  const Tensor rotation = f64({3, 1, 2}, {0, 1, 0, 1, 0, 1});
  const Tensor q = f64({3, 1, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor k = f64({3, 1, 2}, {10, 20, 30, 40, 50, 60});
  const Tensor v = f64({3, 1, 2}, {1.5, 2.5, 3.5, 4.5, 5.5, 6.5});
  const Tensor k_pages = f16({2, 1, 2, 2}, std::vector<float>(8, -1));
  const Tensor v_pages = output({2, 1, 2, 2});
  // Token 0: position 2 of sequence 1, so page block_tables[1][1] = 0, slot 0; token 1 is padding;
  // token 2 is behind live.
  RopeKvWrite::reference({.q = q,
                          .k_pages = k_pages,
                          .v_pages = v_pages,
                          .k = k,
                          .v = v,
                          .rotation = rotation,
                          .positions = u32({3}, {2, 0, 1}),
                          .sequences = i32({3}, {1, -1, 1}),
                          .block_tables = u32({2, 2}, {9, 9, 1, 0}),
                          .live = u32({1}, {2})});
  expect_close(values(q), {-2, 1, 3, 4, 5, 6});
  const double n = kUntouched;
  expect_close(values(v_pages), {1.5, 2.5, n, n, n, n, n, n});
  std::vector<double> stored;
  for (const uint16_t bits : values<uint16_t>(k_pages)) stored.push_back(f16_to_f32(bits));
  expect_close(stored, {-20, 10, -1, -1, -1, -1, -1, -1});
}

TEST_F(ReferenceTest, AttentionWeighsTheVisibleValues) {
  // One head of one value; q = 1, keys 0 and ln 2: the second weighs twice as much.
  const Tensor k = f64({2, 1, 1}, {0, std::numbers::ln2});
  const Tensor v = f64({2, 1, 1}, {3, 6});
  const Tensor q = f64({2, 1, 1}, {1, 1});
  const Tensor y = output({2, 1, 1});
  Attention::reference({.y = y, .q = q, .k = k, .v = v});
  expect_close(values(y), {3, 5});  // query 0 sees key 0 alone
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .causal = false});
  expect_close(values(y), {5, 5});
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .window = 1});
  expect_close(values(y), {3, 6});
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .scale = 0});
  expect_close(values(y), {3, 4.5});
  // Position 3 with a window of 2 sees positions 2 and 3, of which there is no key; 2 sees 1.
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .window = 2, .position_offset = 2});
  expect_close(values(y), {6, 0});
  // Queries before the first key see nothing.
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .position_offset = -1});
  expect_close(values(y), {0, 3});
  // A cap c turns the score ln 2 into c tanh(ln 2 / c).
  const double weight = std::exp(0.5 * std::tanh(std::numbers::ln2 / 0.5));
  Attention::reference({.y = y, .q = q, .k = k, .v = v, .soft_cap = 0.5f});
  expect_close(values(y), {3, (3 + 6 * weight) / (1 + weight)});
}

TEST_F(ReferenceTest, AttentionSharesKeyHeadsByGroups) {
  const Tensor q = f64({1, 4, 1}, {1, 1, 1, 1});
  const Tensor k = f64({1, 2, 1}, {1, 1}), v = f64({1, 2, 1}, {10, 20});
  const Tensor y = output({1, 4, 1});
  Attention::reference({.y = y, .q = q, .k = k, .v = v});
  expect_close(values(y), {10, 10, 20, 20});
}

TEST_F(ReferenceTest, PagedAttentionFollowsTheTables) {
  // Two key heads, pages of two tokens. Sequence 0 lies in pages 2 and 0; its position 2 is in
  // page 0, slot 0. Equal keys: plain means of the values.
  const Tensor k_pages = f64({3, 2, 2, 1}, std::vector<double>(12, 1));
  const Tensor v_pages = f64({3, 2, 2, 1}, {7, -1, 70, -1, -1, -1, -1, -1, 1, 4, 10, 40});
  const Tensor q = f64({4, 2, 1}, std::vector<double>(8, 1));
  const Tensor y = output({4, 2, 1});
  PagedAttention::Args args = {.y = y,
                               .q = q,
                               .k_pages = k_pages,
                               .v_pages = v_pages,
                               .positions = u32({4}, {2, 0, 1, 0}),
                               .sequences = i32({4}, {0, -1, 0, 0}),
                               .block_tables = u32({1, 2}, {2, 0}),
                               .live = u32({1}, {3})};
  PagedAttention::reference(args);
  const double n = kUntouched;
  expect_close(values(y), {4, 40, n, n, 2.5, 25, n, n});
  args.window = 2;
  PagedAttention::reference(args);
  expect_close(values(y), {5.5, 55, n, n, 2.5, 25, n, n});
}

}  // namespace
}  // namespace tessera
