// The K formats for matmul_q8.inl: 256 values, whose sub-blocks have scales of their own.

#pragma once

#include "ops/matmul/matmul_q8_formats.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

/// Byte i (0 to 3) of each lane, as a float.
inline Vec byte_to_float(Ints words, int i) {
  return ints_to_float(and_ints(shift_right(words, 8 * i), splat_ints(0xff)));
}

/// The first 16 bytes of Q4_K and Q5_K: d, dmin, and eight scales and minima of six bits.
struct SixBitScales {
  Vec d, dmin;
  Ints scales[2], minima[2];  // four bytes a lane

  void load(const unsigned char* block, int64_t stride) {
    Ints words[4];
    load_groups(block, stride, words);
    d = low_halves(words[0]);
    dmin = low_halves(shift_right<16>(words[0]));
    // Bytes 0 to 3 and 4 to 7 begin the first four scales and minima, and lend their two high bits
    // to the last four; bytes 8 to 11 have the low four bits of those.
    const Ints six = splat_ints(0x3f3f3f3f), four = splat_ints(0x0f0f0f0f);
    const Ints high = splat_ints(0x30303030);
    scales[0] = and_ints(words[1], six);
    minima[0] = and_ints(words[2], six);
    scales[1] = or_ints(and_ints(words[3], four), and_ints(shift_right<2>(words[1]), high));
    minima[1] = or_ints(and_ints(shift_right<4>(words[3]), four),
                        and_ints(shift_right<2>(words[2]), high));
  }
  /// Products of 11 and 6 bits: exact.
  void sub_block(int s, BlockOfRows& b) const {
    b.scale = d * byte_to_float(scales[s / 4], s % 4);
    b.minimum = Vec{} - dmin * byte_to_float(minima[s / 4], s % 4);
  }
};

struct FormatQ4_K {
  static constexpr int kBytes = sizeof(BlockQ4_K), kSubBlocks = 8, kMaxCode = 15, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  struct Words {
    SixBitScales scales;
    Ints nibbles[4][8];  // of two sub-blocks each
  };
  static void load(const unsigned char* block, int64_t stride, Ints, Words& w) {
    w.scales.load(block, stride);
    for (int i = 0; i < 8; ++i) load_groups(block + 16 + 16 * i, stride, w.nibbles[0] + 4 * i);
  }
  static BlockOfRows sub_block(const Words& w, int s) {
    BlockOfRows b;
    w.scales.sub_block(s, b);
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      b.codes[g] = and_ints(shift_right(w.nibbles[s / 2][g], s % 2 * 4), splat_ints(0x0f0f0f0f));
    }
    return b;
  }
};

struct FormatQ5_K {
  static constexpr int kBytes = sizeof(BlockQ5_K), kSubBlocks = 8, kMaxCode = 31, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  struct Words {
    SixBitScales scales;
    Ints nibbles[4][8];
    Ints fifth[8];  // bit s: the fifth bit of sub-block s
  };
  static void load(const unsigned char* block, int64_t stride, Ints, Words& w) {
    w.scales.load(block, stride);
    for (int i = 0; i < 2; ++i) load_groups(block + 16 + 16 * i, stride, w.fifth + 4 * i);
    for (int i = 0; i < 8; ++i) load_groups(block + 48 + 16 * i, stride, w.nibbles[0] + 4 * i);
  }
  static BlockOfRows sub_block(const Words& w, int s) {
    BlockOfRows b;
    w.scales.sub_block(s, b);
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      const Ints low = and_ints(shift_right(w.nibbles[s / 2][g], s % 2 * 4), splat_ints(0x0f0f0f0f));
      const Ints fifth = and_ints(shift_right(w.fifth[g], s), splat_ints(0x01010101));
      b.codes[g] = or_ints(low, shift_left<4>(fifth));
    }
    return b;
  }
};

}  // namespace q8
}  // namespace
}  // namespace tessera::TESSERA_ISA
