// Rotation of the pairs of a head, a strip of pairs at a time: the angles of a token's strip are
// read once for all of its heads.

#include "cpu/simd.hpp"
#include "ops/rope/rope_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

constexpr int64_t kStripPairs = 64;

/// The angles of pairs begin .. begin + count of one token, ready for either pairing.
struct Strip {
  int64_t begin, count;
  float cosines[2 * kStripPairs];  // half split: by pair; interleaved: each one twice
  float sines[2 * kStripPairs];    // interleaved: -sin, sin
};

void read_strip(const RotationView& rotation, int64_t i_token, int64_t begin, Strip* strip) {
  strip->begin = begin;
  strip->count = min_of(kStripPairs, rotation.n_pairs - begin);
  const unsigned char* source = rotation.data + i_token * rotation.token_stride_bytes;
  for (int64_t i = 0; i < strip->count; ++i) {
    float angle[2];
    memcpy(angle, source + (begin + i) * rotation.pair_stride_bytes, sizeof angle);
    if (rotation.interleaved) {
      strip->cosines[2 * i] = strip->cosines[2 * i + 1] = angle[0];
      strip->sines[2 * i] = -angle[1];
      strip->sines[2 * i + 1] = angle[1];
    } else {
      strip->cosines[i] = angle[0];
      strip->sines[i] = angle[1];
    }
  }
}

/// y = x rotated, 2 count values in a row: (2i, 2i + 1) are pairs. y may be x.
void rotate_interleaved(const Strip& strip, const float* x, float* y) {
  for (int64_t i = 0; i < 2 * strip.count; i += kLanes) {
    const int64_t n = min_of(kLanes, 2 * strip.count - i);
    const Vec value = load_first(x + i, n);
    const Vec turned = swap_pairs(value) * load_first(strip.sines + i, n);
    store_first(y + i, fmadd(value, load_first(strip.cosines + i, n), turned), n);
  }
}

/// (y_a, y_b) = (a, b) rotated, count values each. y_a may be a, y_b may be b.
void rotate_halves(const Strip& strip, const float* a, const float* b, float* y_a, float* y_b) {
  for (int64_t i = 0; i < strip.count; i += kLanes) {
    const int64_t n = min_of(kLanes, strip.count - i);
    const Vec va = load_first(a + i, n), vb = load_first(b + i, n);
    const Vec c = load_first(strip.cosines + i, n), s = load_first(strip.sines + i, n);
    store_first(y_a + i, fmadd(va, c, -(vb * s)), n);
    store_first(y_b + i, fmadd(vb, c, va * s), n);
  }
}

/// Rotates the strip's pairs of one head in place.
void rotate_in_place(const RotationView& rotation, const Strip& strip, float* head) {
  if (rotation.interleaved) {
    rotate_interleaved(strip, head + 2 * strip.begin, head + 2 * strip.begin);
  } else {
    float *a = head + strip.begin, *b = a + rotation.n_pairs;
    rotate_halves(strip, a, b, a, b);
  }
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
