#pragma once

// The block formats of GGUF, byte for byte. Plain old data and nothing else: kernels compiled for
// one instruction set include this file. Values are little-endian; `d`, `m` and `dmin` are IEEE
// binary16 bit patterns. In the 4-bit and 5-bit formats the low nibbles of `qs` hold the first half
// of a block and the high nibbles the second half (not consecutive pairs).

#include <stdint.h>

namespace tessera {

// Blocks lie at any byte of a file.
#pragma pack(push, 1)

struct BlockQ4_0 {  // value = d * (q - 8)
  uint16_t d;
  uint8_t qs[16];
};
struct BlockQ4_1 {  // value = d * q + m
  uint16_t d, m;
  uint8_t qs[16];
};
struct BlockQ5_0 {  // value = d * (q - 16); bit i of qh is the fifth bit of value i
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {  // value = d * q + m
  uint16_t d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {  // value = d * q
  uint16_t d;
  int8_t qs[32];
};

// The K formats: 256 values in sub-blocks of 16 or 32, whose scales are quantised themselves.
struct BlockQ2_K {
  uint8_t scales[16];  // low nibble: scale, high nibble: minimum, of each 16 values
  uint8_t qs[64];
  uint16_t d, dmin;
};
struct BlockQ3_K {
  uint8_t hmask[32];  // third bits
  uint8_t qs[64];
  uint8_t scales[12];  // sixteen 6-bit scales, offset 32
  uint16_t d;
};
struct BlockQ4_K {
  uint16_t d, dmin;
  uint8_t scales[12];  // eight 6-bit scales and eight 6-bit minima
  uint8_t qs[128];
};
struct BlockQ5_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];  // fifth bits
  uint8_t qs[128];
};
struct BlockQ6_K {
  uint8_t ql[128];    // low four bits
  uint8_t qh[64];     // high two bits
  int8_t scales[16];  // of each 16 values
  uint16_t d;
};

#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

}  // namespace tessera
