#include "ops/quantize/convert_cpu.hpp"
#include "ops/quantize/decode_rows.inl"

namespace tessera::TESSERA_ISA {
namespace {

void to_f16(const float* source, uint16_t* target, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_f16(target + i, load(source + i));
  for (; i < n; ++i) target[i] = f32_to_f16_bits(source[i]);
}

void to_bf16(const float* source, uint16_t* target, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i] = f32_to_bf16_bits(source[i]);
}

}  // namespace

void convert_rows(const ConvertArgs& args, Team& team) noexcept {
  // Values that wait in the L1 cache between their two conversions; whole blocks of every format.
  constexpr int64_t kStrip = 1024;
  const int64_t n_cols = args.y.n_cols;
  for (int64_t i; (i = team.next_chunk(args.y.n_rows)) < args.y.n_rows;) {
    const auto* x = row_of<const unsigned char>(args.x, i);
    if (args.to == Storage::kF32) {
      decode_row(args.from, x, row_of<float>(args.y, i), n_cols);
      continue;
    }
    uint16_t* y = row_of<uint16_t>(args.y, i);
    for (int64_t begin = 0; begin < n_cols; begin += kStrip) {
      float strip[kStrip];
      const int64_t n = min_of(kStrip, n_cols - begin);
      decode_row(args.from, x + begin / args.block_size * args.block_bytes, strip, n);
      if (args.to == Storage::kF16) {
        to_f16(strip, y + begin, n);
      } else {
        to_bf16(strip, y + begin, n);
      }
    }
  }
}

}  // namespace tessera::TESSERA_ISA
