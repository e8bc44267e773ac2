#include "engine/batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tessera {
namespace {

const BatchLimits kLimits = {.max_tokens = 24,
                             .max_sequences = 3,
                             .max_logit_rows = 10,
                             .max_pages = 4,
                             .rope_frequencies = {1.0, 0.25}};

template <typename T>
std::vector<T> field(std::span<const std::byte> packed, const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.shape.count()));
  std::memcpy(values.data(), packed.data() + tensor.offset_bytes, values.size() * sizeof(T));
  return values;
}

TEST(Batch, BucketsArePowersOfTwoUpToTheMost) {
  EXPECT_EQ(bucket_size(0, 24), 0);
  EXPECT_EQ(bucket_size(1, 24), 1);
  EXPECT_EQ(bucket_size(9, 24), 16);
  EXPECT_EQ(bucket_size(17, 24), 24);
  EXPECT_EQ(bucket_sizes(24), (std::vector<int64_t>{1, 2, 4, 8, 16, 24}));
  EXPECT_EQ(bucket_sizes(1), (std::vector<int64_t>{1}));
  for (int64_t n = 1; n <= 24; ++n) {
    const std::vector<int64_t> sizes = bucket_sizes(24);
    EXPECT_NE(std::find(sizes.begin(), sizes.end(), bucket_size(n, 24)), sizes.end()) << n;
  }
}

TEST(Batch, BucketsOfPagesBeginAtThoseOf1024Tokens) {
  EXPECT_EQ(page_bucket_size(1, 4), 4);
  EXPECT_EQ(page_bucket_size(1, 256), 32);
  EXPECT_EQ(page_bucket_size(32, 256), 32);
  EXPECT_EQ(page_bucket_size(33, 256), 64);
  EXPECT_EQ(page_bucket_size(129, 200), 200);
  EXPECT_EQ(page_bucket_sizes(4), (std::vector<int64_t>{4}));
  EXPECT_EQ(page_bucket_sizes(200), (std::vector<int64_t>{32, 64, 128, 200}));
}

TEST(Batch, PacksARaggedBatchAndItsPadding) {
  Batch batch(kLimits);
  const std::vector<uint32_t> prompt = {7, 8, 9, 10}, answer = {11}, prompt_pages = {5, 2},
                              answer_pages = {3};
  batch.add(prompt, 30, prompt_pages, 1);
  batch.add(answer, 4, answer_pages, 1);
  EXPECT_EQ(batch.bucket(), (Bucket{8, 2, 2, 4}));
  EXPECT_EQ(batch.exact_bucket(), (Bucket{5, 2, 2, 2}));
  EXPECT_EQ(batch.page_of(1), 5u);  // position 31
  EXPECT_EQ(batch.page_of(2), 2u);  // position 32
  EXPECT_EQ(batch.page_of(4), 3u);

  const auto packed = batch.pack(batch.bucket());
  const StepLayout layout = lay_out(batch.bucket(), kLimits, nullptr);
  EXPECT_EQ(static_cast<int64_t>(packed.size()), layout.size_bytes);
  const StepState& state = layout.state;
  EXPECT_EQ(field<uint32_t>(packed, state.n_tokens)[0], 5u);
  EXPECT_EQ(field<uint32_t>(packed, state.n_logit_rows)[0], 2u);
  EXPECT_EQ(field<uint32_t>(packed, state.token_ids),
            (std::vector<uint32_t>{7, 8, 9, 10, 11, 0, 0, 0}));
  EXPECT_EQ(field<uint32_t>(packed, state.positions),
            (std::vector<uint32_t>{30, 31, 32, 33, 4, 0, 0, 0}));
  EXPECT_EQ(field<int32_t>(packed, state.sequences),
            (std::vector<int32_t>{0, 0, 0, 0, 1, -1, -1, -1}));
  EXPECT_EQ(field<uint32_t>(packed, state.block_tables),
            (std::vector<uint32_t>{5, 2, 0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(field<uint32_t>(packed, state.logit_rows), (std::vector<uint32_t>{3, 4}));
  const std::vector<float> rotation = field<float>(packed, state.rotation);
  ASSERT_EQ(rotation.size(), 8u * 2 * 2);
  EXPECT_FLOAT_EQ(rotation[0], static_cast<float>(std::cos(30.0)));
  EXPECT_FLOAT_EQ(rotation[1], static_cast<float>(std::sin(30.0)));
  EXPECT_FLOAT_EQ(rotation[2], static_cast<float>(std::cos(7.5)));
  EXPECT_FLOAT_EQ(rotation[3], static_cast<float>(std::sin(7.5)));
  EXPECT_FLOAT_EQ(rotation[4 * 4 + 3], static_cast<float>(std::sin(1.0)));
}

TEST(Batch, RepacksSmallerWithoutLeftovers) {
  Batch batch(kLimits);
  const std::vector<uint32_t> tokens(24, 9), pages = {1, 2, 3, 4};
  batch.add(tokens, 0, pages, 10);
  batch.pack(batch.bucket());
  batch.clear();
  batch.add(std::span(tokens).first(3), 0, std::span(pages).first(1), 0);
  EXPECT_EQ(batch.bucket(), (Bucket{4, 1, 0, 4}));
  const auto packed = batch.pack(batch.bucket());
  const StepState state = lay_out(batch.bucket(), kLimits, nullptr).state;
  EXPECT_EQ(field<uint32_t>(packed, state.token_ids), (std::vector<uint32_t>{9, 9, 9, 0}));
  EXPECT_EQ(field<uint32_t>(packed, state.block_tables), (std::vector<uint32_t>{1, 0, 0, 0}));
  EXPECT_EQ(field<uint32_t>(packed, state.n_logit_rows)[0], 0u);
}

TEST(Batch, FieldsDoNotOverlap) {
  const StepLayout layout = lay_out(kLimits.largest_bucket(), kLimits, nullptr);
  const StepState& s = layout.state;
  int64_t end = 0;
  for (const Tensor& tensor : {s.n_tokens, s.n_logit_rows, s.token_ids, s.positions, s.sequences,
                               s.rotation, s.block_tables, s.logit_rows}) {
    EXPECT_GE(tensor.offset_bytes, end);
    end = tensor.offset_bytes + tensor.span_bytes();
  }
  EXPECT_LE(end, layout.size_bytes);
}

}  // namespace
}  // namespace tessera
