#include "ops/quantize/quantize_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/quantize/quantize_ref.hpp"

namespace tessera {
namespace {

constexpr int64_t kBlock = 32;

std::vector<float> to_f32(const ref::Values& x) {
  std::vector<float> rounded;
  for (const double value : x) rounded.push_back(static_cast<float>(value));
  return rounded;
}

std::vector<ref::Q8Block> quantise_row(const ref::Values& x) {
  const std::vector<float> values = to_f32(x);
  std::vector<ref::Q8Block> blocks;
  for (size_t i = 0; i < values.size(); i += kBlock) {
    blocks.push_back(ref::quantise_block(std::span<const float, kBlock>(&values[i], kBlock)));
  }
  return blocks;
}

/// The three planes of a row: scales, sums, values.
void store_planes(std::byte* row, const std::vector<ref::Q8Block>& blocks) {
  std::byte* sums = row + blocks.size() * sizeof(float);
  std::byte* quants = sums + blocks.size() * sizeof(float);
  for (size_t b = 0; b < blocks.size(); ++b) {
    std::memcpy(row + b * sizeof(float), &blocks[b].scale, sizeof(float));
    std::memcpy(sums + b * sizeof(float), &blocks[b].sum, sizeof(float));
    std::memcpy(quants + b * kBlock, blocks[b].q.data(), kBlock);
  }
}

}  // namespace

ref::Q8Block ref::quantise_block(std::span<const float, 32> x) {
  float largest = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) {
      constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
      return {.scale = kNaN, .sum = kNaN, .q = {}};
    }
    largest = std::max(largest, std::fabs(value));
  }
  const float inverse = 127.0f / largest;
  if (!std::isfinite(inverse)) return {};  // largest is 0, or too small for its inverse
  Q8Block block = {.scale = largest / 127.0f, .sum = 0, .q = {}};
  int sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    block.q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
    sum += block.q[i];
  }
  block.sum = block.scale * static_cast<float>(sum);
  return block;
}

ref::Values ref::through_q8(const Values& x) {
  Values decoded;
  for (const Q8Block& block : quantise_row(x)) {
    for (const int8_t q : block.q) decoded.push_back(static_cast<double>(block.scale) * q);
  }
  return decoded;
}

void QuantizeRows::validate(const Args& args) {
  ops::expect("quantize_rows.x", args.x, {DType::kF32}, {-1, -1});
  ops::require(args.x.dim(1) % kBlock == 0, "quantize_rows.x",
               "expected rows of a multiple of {} values, got {}; keep the activations exact for "
               "such a layer",
               kBlock, args.x.dim(1));
  ops::expect("quantize_rows.y", args.y, {DType::kQ8}, {args.x.dim(0), args.x.dim(1)});
  ops::expect_optional("quantize_rows.live", args.live, {DType::kU32}, {1});
}

Cost QuantizeRows::cost(const Args& args) {
  return {.flops = 3 * static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.y)};
}

void QuantizeRows::reference(const Args& args) {
  for (int64_t row = 0; row < ref::live_rows(args.live, args.x.dim(0)); ++row) {
    store_planes(ref::row_address(args.y, row), quantise_row(ref::read_row(args.x, row)));
  }
}

}  // namespace tessera
