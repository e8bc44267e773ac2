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
    minima[1] =
        or_ints(and_ints(shift_right<4>(words[3]), four), and_ints(shift_right<2>(words[2]), high));
  }
  /// Products of 11 and 6 bits: exact.
  void sub_block(int s, BlockOfRows& b) const {
    b.scale[0] = d * byte_to_float(scales[s / 4], s % 4);
    b.minimum[0] = Vec{} - dmin * byte_to_float(minima[s / 4], s % 4);
  }
};

struct FormatQ4_K {
  static constexpr int kBytes = sizeof(BlockQ4_K), kSubBlocks = 8, kParts = 1;
  static constexpr int kMaxCode = 15, kOffset = 0;
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
  static constexpr int kBytes = sizeof(BlockQ5_K), kSubBlocks = 8, kParts = 1;
  static constexpr int kMaxCode = 31, kOffset = 0;
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
      const Ints low =
          and_ints(shift_right(w.nibbles[s / 2][g], s % 2 * 4), splat_ints(0x0f0f0f0f));
      const Ints fifth = and_ints(shift_right(w.fifth[g], s), splat_ints(0x01010101));
      b.codes[g] = or_ints(low, shift_left<4>(fifth));
    }
    return b;
  }
};

struct FormatQ6_K {
  static constexpr int kBytes = sizeof(BlockQ6_K), kSubBlocks = 8, kParts = 2;
  static constexpr int kMaxCode = 63, kOffset = 32;
  static constexpr bool kSigned = false, kHasMinimum = false;
  struct Words {
    Ints nibbles[4][8];  // of sub-blocks 0 and 2, 1 and 3, 4 and 6, 5 and 7
    Ints high[2][8];     // bits 2 q and 2 q + 1: the high bits of sub-block 4 half + q
    Ints scales[4];      // signed, four bytes a lane
    Vec d;
  };
  static void load(const unsigned char* block, int64_t stride, Ints offsets, Words& w) {
    for (int i = 0; i < 8; ++i) load_groups(block + 16 * i, stride, w.nibbles[0] + 4 * i);
    for (int i = 0; i < 4; ++i) load_groups(block + 128 + 16 * i, stride, w.high[0] + 4 * i);
    load_groups(block + 192, stride, w.scales);
    w.d = low_halves(shift_right<16>(gather_ints(block + 206, offsets)));
  }
  static BlockOfRows sub_block(const Words& w, int s) {
    const int half = s / 4, quarter = s % 4;
    BlockOfRows b;
    // Products of 11 and 8 bits: exact.
    const Ints scales = xor_ints(w.scales[s / 2], splat_ints(INT32_MIN | 0x00808080));
    for (int p = 0; p < 2; ++p) {
      b.scale[p] = w.d * (byte_to_float(scales, s % 2 * 2 + p) - splat(128));
    }
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      const Ints nibbles = shift_right(w.nibbles[2 * half + quarter % 2][g], quarter / 2 * 4);
      const Ints high = shift_right(w.high[half][g], quarter * 2);
      b.codes[g] = or_ints(and_ints(nibbles, splat_ints(0x0f0f0f0f)),
                           shift_left<4>(and_ints(high, splat_ints(0x03030303))));
    }
    return b;
  }
};

/// The codes of Q2_K and the low bits of Q3_K: sub-block s has bits 2 (s mod 4) of 32 bytes, which
/// it shares with three others.
struct TwoBitCodes {
  Ints words[2][8];

  void load(const unsigned char* source, int64_t stride) {
    for (int i = 0; i < 4; ++i) load_groups(source + 16 * i, stride, words[0] + 4 * i);
  }
  Ints group(int s, int g) const {
    return and_ints(shift_right(words[s / 4][g], s % 4 * 2), splat_ints(0x03030303));
  }
};

struct FormatQ2_K {
  static constexpr int kBytes = sizeof(BlockQ2_K), kSubBlocks = 8, kParts = 2;
  static constexpr int kMaxCode = 3, kOffset = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  struct Words {
    Ints scales[4];  // four bytes a lane: low nibbles; high nibbles are minima
    TwoBitCodes codes;
    Vec d, dmin;
  };
  static void load(const unsigned char* block, int64_t stride, Ints offsets, Words& w) {
    load_groups(block, stride, w.scales);
    w.codes.load(block + 16, stride);
    const Ints pair = gather_ints(block + 80, offsets);
    w.d = low_halves(pair);
    w.dmin = low_halves(shift_right<16>(pair));
  }
  static BlockOfRows sub_block(const Words& w, int s) {
    BlockOfRows b;
    const Ints four = splat_ints(0x0f0f0f0f);
    const Ints scales = and_ints(w.scales[s / 2], four);
    const Ints minima = and_ints(shift_right<4>(w.scales[s / 2]), four);
    for (int p = 0; p < 2; ++p) {
      b.scale[p] = w.d * byte_to_float(scales, s % 2 * 2 + p);
      b.minimum[p] = Vec{} - w.dmin * byte_to_float(minima, s % 2 * 2 + p);
    }
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) b.codes[g] = w.codes.group(s, g);
    return b;
  }
};

struct FormatQ3_K {
  static constexpr int kBytes = sizeof(BlockQ3_K), kSubBlocks = 8, kParts = 2;
  static constexpr int kMaxCode = 7, kOffset = 4;
  static constexpr bool kSigned = false, kHasMinimum = false;
  struct Words {
    Ints third[8];  // bit s: the third bit of sub-block s
    TwoBitCodes low;
    Ints scales[4];  // four bytes a lane, offset 32
    Vec d;
  };
  static void load(const unsigned char* block, int64_t stride, Ints, Words& w) {
    for (int i = 0; i < 2; ++i) load_groups(block + 16 * i, stride, w.third + 4 * i);
    w.low.load(block + 32, stride);
    // The last 16 bytes: two more codes, the low four bits of scales 0 to 7 and 8 to 15 in eight
    // bytes, all their high two bits in four, and d.
    Ints end[4];
    load_groups(block + 94, stride, end);
    const Ints four = splat_ints(0x0f0f0f0f), high = splat_ints(0x30303030);
    const auto shifted = [&](int i) {
      return or_ints(shift_right<16>(end[i]), shift_left<16>(end[i + 1]));
    };
    const Ints low[2] = {shifted(0), shifted(1)}, two = shifted(2);
    w.scales[0] = or_ints(and_ints(low[0], four), and_ints(shift_left<4>(two), high));
    w.scales[1] = or_ints(and_ints(low[1], four), and_ints(shift_left<2>(two), high));
    w.scales[2] = or_ints(and_ints(shift_right<4>(low[0]), four), and_ints(two, high));
    w.scales[3] =
        or_ints(and_ints(shift_right<4>(low[1]), four), and_ints(shift_right<2>(two), high));
    w.d = low_halves(shift_right<16>(end[3]));
  }
  static BlockOfRows sub_block(const Words& w, int s) {
    BlockOfRows b;
    for (int p = 0; p < 2; ++p) {
      b.scale[p] = w.d * (byte_to_float(w.scales[s / 2], s % 2 * 2 + p) - splat(32));
    }
    TESSERA_UNROLL
    for (int g = 0; g < 8; ++g) {
      const Ints third = and_ints(shift_right(w.third[g], s), splat_ints(0x01010101));
      b.codes[g] = or_ints(w.low.group(s, g), shift_left<2>(third));
    }
    return b;
  }
};

}  // namespace q8
}  // namespace
}  // namespace tessera::TESSERA_ISA
