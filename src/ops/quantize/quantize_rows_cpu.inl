#include "cpu/simd.hpp"
#include "ops/quantize/quantize_rows_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

constexpr int kVectors = 32 / kLanes;  // of a block

/// Largest magnitude of a block; a NaN counts as more than infinity.
inline float largest_magnitude(const Vec (&x)[kVectors]) {
  // The bits of non-negative floats are ordered like integers, NaN above all.
  IVec best = {};
  for (int j = 0; j < kVectors; ++j) {
    const IVec magnitude = bits_as<IVec>(x[j]) & 0x7fffffff;
    best = magnitude > best ? magnitude : best;
  }
  return bits_as<float>(reduce_max(best));
}

/// 32 values to their quantised form; see the contract.
inline void quantize_block(const float* source, float* scale, float* sum, int8_t* target) {
  Vec x[kVectors];
  for (int j = 0; j < kVectors; ++j) x[j] = load(source + j * kLanes);
  const float largest = largest_magnitude(x), inverse = 127.0f / largest;
  const bool finite = largest < __builtin_inff();  // false for NaN
  if (!finite || inverse == __builtin_inff()) {    // largest is 0, or too small for its inverse
    memset(target, 0, 32);
    *scale = *sum = finite ? 0.0f : __builtin_nanf("");
    return;
  }
  IVec total = {};
  for (int j = 0; j < kVectors; ++j) {
    const IVec q = __builtin_convertvector(round_to_even(x[j] * inverse), IVec);
    store_i8(target + j * kLanes, q);
    total += q;
  }
  *scale = largest / 127.0f;
  *sum = *scale * static_cast<float>(reduce_add(total));
}

}  // namespace

void quantize_rows(const QuantizeRowsArgs& args, Team& team) noexcept {
  const int64_t n_rows = live_rows(args.live, args.x.n_rows);
  const int64_t n_blocks = args.x.n_cols / 32;
  for (int64_t i_row; (i_row = team.next_chunk(n_rows)) < n_rows;) {
    const float* x = row_of<const float>(args.x, i_row);
    float* scales = row_of<float>(args.y, i_row);
    float* sums = scales + n_blocks;
    auto* values = reinterpret_cast<int8_t*>(sums + n_blocks);
    for (int64_t i = 0; i < n_blocks; ++i) {
      quantize_block(x + 32 * i, scales + i, sums + i, values + 32 * i);
    }
  }
}

}  // namespace tessera::TESSERA_ISA
