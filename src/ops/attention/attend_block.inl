// Some queries over a block of keys: scores, running softmax, weighted values.
//
// What is computed for a query depends on that query and on the keys of the block alone, never on
// the queries beside it: every score is summed over the same lanes, every value in key order.

#include "cpu/simd.hpp"
#include "ops/attention/attention_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

constexpr int kBlockKeys = 32;
constexpr int kMaxRows = 64;  // queries (of several heads and tokens) that share a pass over keys

/// Keys and values of one head at consecutive positions.
struct KeyBlock {
  const unsigned char* k[kBlockKeys];
  const unsigned char* v[kBlockKeys];
};

/// Queries and their running state: value sums `o` are not divided by `sum` yet.
struct Rows {
  const float* q[kMaxRows];
  float* o[kMaxRows];
  float maximum[kMaxRows], sum[kMaxRows];
};

struct Scoring {
  int64_t head_dim;
  float scale, soft_cap;
};

template <bool kF16>
inline Vec load_kv(const unsigned char* values, int64_t i) {
  return kF16 ? load_f16(values + 2 * i) : load(reinterpret_cast<const float*>(values) + i);
}

template <bool kF16>
inline Vec load_kv_first(const unsigned char* values, int64_t i, int64_t n) {
  return kF16 ? load_f16_first(values + 2 * i, n)
              : load_first(reinterpret_cast<const float*>(values) + i, n);
}

/// Lane i of the result: the sum of the lanes of x[i].
inline Vec reduce_add_each(const Vec (&x)[kLanes]) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  Vec four[4];  // lane 4 j + i of four[g]: x[4 g + i] summed over its quarter j
  for (int g = 0; g < 4; ++g) {
    const __m512* a = reinterpret_cast<const __m512*>(x + 4 * g);
    const __m512 ab = _mm512_unpacklo_ps(a[0], a[1]) + _mm512_unpackhi_ps(a[0], a[1]);
    const __m512 cd = _mm512_unpacklo_ps(a[2], a[3]) + _mm512_unpackhi_ps(a[2], a[3]);
    const __m512d abd = _mm512_castps_pd(ab), cdd = _mm512_castps_pd(cd);
    four[g] = _mm512_castpd_ps(_mm512_unpacklo_pd(abd, cdd)) +
              _mm512_castpd_ps(_mm512_unpackhi_pd(abd, cdd));
  }
  const __m512 low =
      _mm512_shuffle_f32x4(four[0], four[1], 0x88) + _mm512_shuffle_f32x4(four[0], four[1], 0xdd);
  const __m512 high =
      _mm512_shuffle_f32x4(four[2], four[3], 0x88) + _mm512_shuffle_f32x4(four[2], four[3], 0xdd);
  return _mm512_shuffle_f32x4(low, high, 0x88) + _mm512_shuffle_f32x4(low, high, 0xdd);
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  Vec four[2];  // lane 4 j + i of four[g]: x[4 g + i] summed over its half j
  for (int g = 0; g < 2; ++g) {
    const Vec* a = x + 4 * g;
    const __m256 ab = _mm256_unpacklo_ps(a[0], a[1]) + _mm256_unpackhi_ps(a[0], a[1]);
    const __m256 cd = _mm256_unpacklo_ps(a[2], a[3]) + _mm256_unpackhi_ps(a[2], a[3]);
    const __m256d abd = _mm256_castps_pd(ab), cdd = _mm256_castps_pd(cd);
    four[g] = _mm256_castpd_ps(_mm256_unpacklo_pd(abd, cdd)) +
              _mm256_castpd_ps(_mm256_unpackhi_pd(abd, cdd));
  }
  return _mm256_permute2f128_ps(four[0], four[1], 0x20) +
         _mm256_permute2f128_ps(four[0], four[1], 0x31);
#else
  const Vec ab = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5) +
                 __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
  const Vec cd = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5) +
                 __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
#endif
}

/// Dot products of kQ queries with kLanes / kQ keys: as many sums as a vector has lanes, each in a
/// register of its own (16 of AVX-512's 32; 8 and 4 of 16).
template <bool kF16, int kQ>
inline void score_tile(const float* const* q, const unsigned char* const* k, int64_t head_dim,
                       float* const* scores) {
  constexpr int kK = kLanes / kQ;
  Vec sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    Vec query[kQ];
    for (int a = 0; a < kQ; ++a) query[a] = load(q[a] + i);
    for (int b = 0; b < kK; ++b) {
      const Vec key = load_kv<kF16>(k[b], i);
      for (int a = 0; a < kQ; ++a) sums[a * kK + b] = fmadd(query[a], key, sums[a * kK + b]);
    }
  }
  if (i < head_dim) {
    const int64_t n = head_dim - i;
    Vec query[kQ];
    for (int a = 0; a < kQ; ++a) query[a] = load_first(q[a] + i, n);
    for (int b = 0; b < kK; ++b) {
      const Vec key = load_kv_first<kF16>(k[b], i, n);
      for (int a = 0; a < kQ; ++a) sums[a * kK + b] = fmadd(query[a], key, sums[a * kK + b]);
    }
  }
  const Vec dots = reduce_add_each(sums);
  float lanes[kLanes];
  store(lanes, dots);
  for (int a = 0; a < kQ; ++a) memcpy(scores[a], lanes + a * kK, kK * sizeof(float));
}

/// scores[a][j] = q[a] . k[j] for kQ queries; up to kLanes values behind the last key are junk.
template <bool kF16, int kQ>
inline void score_rows(const float* const* q, const KeyBlock& block, int n_keys, int64_t head_dim,
                       float* const* scores) {
  constexpr int kK = kLanes / kQ;
  for (int j = 0; j < n_keys; j += kK) {
    const unsigned char* k[kK];  // behind the last key: the last one again
    for (int b = 0; b < kK; ++b) k[b] = block.k[j + b < n_keys ? j + b : n_keys - 1];
    float* at[kQ];
    for (int a = 0; a < kQ; ++a) at[a] = scores[a] + j;
    score_tile<kF16, kQ>(q, k, head_dim, at);
  }
}

/// Turns the raw scores of a block into cap(scale score), for one row; returns the largest.
inline float finish_scores(const Scoring& scoring, int n_keys, float* scores) {
  const Vec lowest = splat(-__builtin_inff());
  Vec best = lowest;
  for (int j = 0; j < kBlockKeys; j += kLanes) {
    Vec s = load(scores + j) * scoring.scale;
    if (scoring.soft_cap > 0) s = scoring.soft_cap * tanh(s / scoring.soft_cap);
    s = select(lane_numbers() < splat_int(n_keys - j), s, lowest);
    store(scores + j, s);
    best = max(s, best);  // NaN is left out here, but reaches the weights
  }
  return reduce_max(best);
}

/// Turns raw scores of kR rows into weights exp(score - maximum), zero behind the last key, and
/// updates the rows' maxima and sums. shrink[a]: what everything summed so far is to be
/// multiplied with.
template <int kR>
inline void softmax_step(const Scoring& scoring, int n_keys, float* const* scores, float* maximum,
                         float* sum, float* shrink) {
  static_assert(kR <= kLanes);
  float shift[kR], fall[kLanes] = {};
  for (int a = 0; a < kR; ++a) {
    const float largest = finish_scores(scoring, n_keys, scores[a]);
    const float new_maximum = largest > maximum[a] ? largest : maximum[a];
    // With nothing but -infinity so far, subtract 0: the weights become 0 and not NaN.
    shift[a] = new_maximum == -__builtin_inff() ? 0.0f : new_maximum;
    fall[a] = maximum[a] - shift[a];
    maximum[a] = new_maximum;
  }
  float factors[kLanes];
  store(factors, exp(load(fall)));
  for (int a = 0; a < kR; ++a) {
    Vec total = {};
    for (int j = 0; j < kBlockKeys; j += kLanes) {
      const Vec weight = exp(load(scores[a] + j) - shift[a]);
      store(scores[a] + j, weight);
      total += weight;
    }
    shrink[a] = factors[a];
    sum[a] = sum[a] * factors[a] + reduce_add(total);
  }
}

/// o = o * shrink + sum over keys of weight * v, over kV vectors from value `begin`, for kR rows.
template <bool kF16, int kR, int kV>
inline void add_values(float* const* o, const float* shrink, const float* const* weights,
                       const KeyBlock& block, int n_keys, int64_t begin) {
  Vec sums[kR][kV];
  for (int a = 0; a < kR; ++a) {
    for (int b = 0; b < kV; ++b) sums[a][b] = load(o[a] + begin + b * kLanes) * shrink[a];
  }
  for (int j = 0; j < n_keys; ++j) {
    Vec value[kV];
    for (int b = 0; b < kV; ++b) value[b] = load_kv<kF16>(block.v[j], begin + b * kLanes);
    for (int a = 0; a < kR; ++a) {
      const Vec weight = splat(weights[a][j]);
      for (int b = 0; b < kV; ++b) sums[a][b] = fmadd(weight, value[b], sums[a][b]);
    }
  }
  for (int a = 0; a < kR; ++a) {
    for (int b = 0; b < kV; ++b) store(o[a] + begin + b * kLanes, sums[a][b]);
  }
}

/// The last head_dim mod kLanes values of one row.
template <bool kF16>
inline void add_last_values(float* o, float shrink, const float* weights, const KeyBlock& block,
                            int n_keys, int64_t begin, int64_t n) {
  Vec sum = load_first(o + begin, n) * shrink;
  for (int j = 0; j < n_keys; ++j) {
    sum = fmadd(splat(weights[j]), load_kv_first<kF16>(block.v[j], begin, n), sum);
  }
  store_first(o + begin, sum, n);
}

template <bool kF16, int kR>
inline void add_values_of_rows(float* const* o, const float* shrink, const float* const* weights,
                               const KeyBlock& block, int n_keys, int64_t head_dim) {
  constexpr int kV = kLanes == 16 ? 4 : 2;  // 16 or 8 sums in registers
  int64_t i = 0;
  for (; i + kV * kLanes <= head_dim; i += kV * kLanes) {
    add_values<kF16, kR, kV>(o, shrink, weights, block, n_keys, i);
  }
  for (; i + kLanes <= head_dim; i += kLanes) {
    add_values<kF16, kR, 1>(o, shrink, weights, block, n_keys, i);
  }
  if (i == head_dim) return;
  for (int a = 0; a < kR; ++a) {
    add_last_values<kF16>(o[a], shrink[a], weights[a], block, n_keys, i, head_dim - i);
  }
}

/// kR rows from `row` over the keys of a block. Not inlined: registers are scarce enough here.
template <bool kF16, int kR>
__attribute__((noinline)) void attend_rows(const Scoring& scoring, const KeyBlock& block,
                                           int n_keys, Rows* rows, int row) {
  // Room for junk behind the last key.
  float buffer[kR][kBlockKeys + kLanes];
  float *scores[kR], shrink[kR];
  for (int a = 0; a < kR; ++a) scores[a] = buffer[a];
  score_rows<kF16, kR>(rows->q + row, block, n_keys, scoring.head_dim, scores);
  softmax_step<kR>(scoring, n_keys, scores, rows->maximum + row, rows->sum + row, shrink);
  add_values_of_rows<kF16, kR>(rows->o + row, shrink, scores, block, n_keys, scoring.head_dim);
}

/// Rows begin .. end over the first n_keys keys of a block.
template <bool kF16>
void attend_block(const Scoring& scoring, const KeyBlock& block, int n_keys, Rows* rows, int begin,
                  int end) {
  int row = begin;
  for (; row + 4 <= end; row += 4) attend_rows<kF16, 4>(scoring, block, n_keys, rows, row);
  if (row + 2 <= end) {
    attend_rows<kF16, 2>(scoring, block, n_keys, rows, row);
    row += 2;
  }
  if (row < end) attend_rows<kF16, 1>(scoring, block, n_keys, rows, row);
}

}  // namespace
}  // namespace tessera::TESSERA_ISA
