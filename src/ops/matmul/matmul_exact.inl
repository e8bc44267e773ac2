// y = x w^T with exact activations: dot products along K, the lanes of a vector being kLanes
// neighbouring values.
//
// Reduction order, the same for every M: K is cut into slabs (slab_values, by K alone); inside a
// slab lane l sums the products at l, l + kLanes, ... in turn; lanes are added as reduce_four does;
// slabs are added first to last.

#include "ops/matmul/matmul_x.inl"

namespace tessera::TESSERA_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));

// 4 rows of w x 6 tokens: 24 accumulators, 4 vectors of w and one of x fill 29 of 32 registers, and
// a product costs 10 / 24 loads. Tiers with 16 registers: 12 + 3 + 1, and 7 / 12 loads.
constexpr int kRowTile = 4;
constexpr int kTokenTile = kRegisters == 32 ? 6 : 3;
// A tile's operands, 10 rows of a slab, are 30 KiB: an L1 cache. A panel is 96 KiB: part of an L2.
constexpr int64_t kMaxSlab = 768, kPanelRows = 32, kChunkTokens = 192;
constexpr int64_t kPrefetchRows = 8;  // 3 KiB of 4-bit rows of 576 values
constexpr int64_t kSlabUnit = 256;    // slabs end where blocks of every format do

int64_t slab_values(int64_t n_values) {
  const int64_t n_slabs = max_of(1, chunks_of(n_values, kMaxSlab));
  return max_of(1, chunks_of(chunks_of(n_values, n_slabs), kSlabUnit)) * kSlabUnit;
}

/// The lane sums of four vectors.
inline Quad reduce_four(Vec a, Vec b, Vec c, Vec d) {
#if TESSERA_TIER >= TESSERA_TIER_AVX512
  const Vec ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
  const Vec cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  const Vec quads = _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xee);
  const __m256 halves = _mm512_castps512_ps256(quads) + _mm512_extractf32x8_ps(quads, 1);
  return _mm256_castps256_ps128(halves) + _mm256_extractf128_ps(halves, 1);
#elif TESSERA_TIER == TESSERA_TIER_AVX2
  const Vec ab = _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b);
  const Vec cd = _mm256_unpacklo_ps(c, d) + _mm256_unpackhi_ps(c, d);
  const Vec quads = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
  return _mm256_castps256_ps128(quads) + _mm256_extractf128_ps(quads, 1);
#else
  const Vec ab =
      __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vec cd =
      __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
#endif
}

/// sums[t] = the products of four rows of w with x[t] over `n` values.
template <int kTokens>
inline void dot_tile(const float* const* w, const float* const* x, int64_t n, Quad* sums) {
  const float *w0 = w[0], *w1 = w[1], *w2 = w[2], *w3 = w[3];
  const float* tokens[kTokens];
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) tokens[t] = x[t];
  Vec acc[kTokens][kRowTile] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec a = load(w0 + i), b = load(w1 + i), c = load(w2 + i), d = load(w3 + i);
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Vec value = load(tokens[t] + i);
      acc[t][0] = fmadd(a, value, acc[t][0]);
      acc[t][1] = fmadd(b, value, acc[t][1]);
      acc[t][2] = fmadd(c, value, acc[t][2]);
      acc[t][3] = fmadd(d, value, acc[t][3]);
    }
  }
  if (i < n) {
    const int64_t rest = n - i;
    const Vec a = load_first(w0 + i, rest), b = load_first(w1 + i, rest);
    const Vec c = load_first(w2 + i, rest), d = load_first(w3 + i, rest);
    TESSERA_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Vec value = load_first(tokens[t] + i, rest);
      acc[t][0] = fmadd(a, value, acc[t][0]);
      acc[t][1] = fmadd(b, value, acc[t][1]);
      acc[t][2] = fmadd(c, value, acc[t][2]);
      acc[t][3] = fmadd(d, value, acc[t][3]);
    }
  }
  TESSERA_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = reduce_four(acc[t][0], acc[t][1], acc[t][2], acc[t][3]);
  }
}

/// Whether rows of w are used where they lie: f32, if so few tokens see them that a copy does not
/// pay by its alignment and place in a cache, and none has to be converted again for each tile.
bool reads_in_place(const MatmulCpuArgs& args, int64_t n_tokens) {
  const bool plain_x = args.x_type == Storage::kF32 && !args.x_is_q8;
  return args.w_type == Storage::kF32 && n_tokens <= (plain_x ? 64 : kTokenTile);
}

/// Part of y that one chunk makes.
struct Area {
  int64_t row_begin, n_rows;      // features: rows of w, columns of y
  int64_t token_begin, n_tokens;  // rows of x and y
};
/// Values of K in work, and whether they are the first and the last ones.
struct Slab {
  int64_t begin, n;
  bool first, last;
};

/// Adds the products of one slab to up to four values of y. Sums of earlier slabs wait in y.
inline void add_to_y(const MatmulCpuArgs& args, int64_t i_token, int64_t i_row, int64_t n_rows,
                     const Slab& slab, Quad sums) {
  float* y = row_of<float>(args.y, i_token) + i_row;
  const float* residual =
      args.residual.data ? row_of<const float>(args.residual, i_token) + i_row : nullptr;
  for (int64_t r = 0; r < n_rows; ++r) {
    float value = slab.first ? sums[r] : y[r] + sums[r];
    if (slab.last && args.bias) value += args.bias[i_row + r];
    if (slab.last && residual) value += residual[r];
    y[r] = value;
  }
}

/// All tiles of decoded rows (`panel`: their first values, kPanelRows at most) x a tile of tokens.
template <int kTokens>
void rows_times_tokens(const MatmulCpuArgs& args, const float* const* panel, const float* const* x,
                       int64_t i_row, int64_t n_rows, int64_t i_token, const Slab& slab) noexcept {
  for (int64_t r = 0; r < n_rows; r += kRowTile) {
    const int64_t n = min_of(kRowTile, n_rows - r);
    const float* w[kRowTile];
    for (int64_t j = 0; j < kRowTile; ++j) w[j] = panel[r + min_of(j, n - 1)];
    Quad sums[kTokens];
    dot_tile<kTokens>(w, x, slab.n, sums);
    for (int t = 0; t < kTokens; ++t) add_to_y(args, i_token + t, i_row + r, n, slab, sums[t]);
  }
}

using TokenTileFunction = void (*)(const MatmulCpuArgs&, const float* const*, const float* const*,
                                   int64_t, int64_t, int64_t, const Slab&) noexcept;

/// The kernel for 1 to kMaxTokens tokens.
template <int kMaxTokens>
TokenTileFunction token_tile(int64_t n_tokens) {
  if constexpr (kMaxTokens > 1) {
    if (n_tokens < kMaxTokens) return token_tile<kMaxTokens - 1>(n_tokens);
  }
  return rows_times_tokens<kMaxTokens>;
}

void multiply_area(const MatmulCpuArgs& args, const Area& area, const Slab& slab) {
  alignas(64) float decoded[kPanelRows * kMaxSlab];
  alignas(64) float converted[kTokenTile * kMaxSlab];
  const bool few = area.n_tokens <= kTokenTile, in_place = reads_in_place(args, area.n_tokens);
  const int64_t panel_rows = few || in_place ? kRowTile : kPanelRows;
  // Tiles of about equal size: 8 tokens as 6 and 2 would take a third longer than as 4 and 4.
  const int64_t tile = chunks_of(area.n_tokens, max_of(1, chunks_of(area.n_tokens, kTokenTile)));
  const int64_t slab_bytes = storage_bytes(args.w_type, slab.n);
  const int64_t w_offset_bytes = storage_bytes(args.w_type, slab.begin);
  for (int64_t r = 0; r < area.n_rows; r += panel_rows) {
    const int64_t i_row = area.row_begin + r, n_rows = min_of(panel_rows, area.n_rows - r);
    const float* panel[kPanelRows];
    for (int64_t j = 0; j < n_rows; ++j) {
      const unsigned char* source = row_of<const unsigned char>(args.w, i_row + j) + w_offset_bytes;
      // Decoding waits for rows that few tokens see: ask for one further on, within the chunk.
      if (few && !in_place && r + j + kPrefetchRows < area.n_rows) {
        const unsigned char* later = source + kPrefetchRows * args.w.stride_bytes;
        for (int64_t b = 0; b < slab_bytes; b += 64) __builtin_prefetch(later + b);
      }
      panel[j] = in_place ? reinterpret_cast<const float*>(source) : decoded + j * kMaxSlab;
      if (!in_place) decode_weights(args.w_type, source, decoded + j * kMaxSlab, slab.n);
    }
    for (int64_t t = 0; t < area.n_tokens; t += tile) {
      const int64_t i_token = area.token_begin + t, n = min_of(tile, area.n_tokens - t);
      const float* x[kTokenTile];
      for (int64_t j = 0; j < n; ++j) {
        x[j] = activations(args, i_token + j, slab.begin, slab.n, converted + j * kMaxSlab);
      }
      token_tile<kTokenTile>(n)(args, panel, x, i_row, n_rows, i_token, slab);
    }
  }
}

}  // namespace

void matmul_rows(const MatmulCpuArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows), n_rows = args.y.n_cols;
  const int64_t n_values = args.x.n_cols, slab_size = slab_values(n_values);
  const int64_t chunk_rows = n_tokens > kTokenTile ? kPanelRows : few_tokens_chunk_rows(n_rows);
  const int64_t n_across = chunks_of(n_rows, chunk_rows);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    Area area;
    area.row_begin = chunk % n_across * chunk_rows;
    area.n_rows = min_of(chunk_rows, n_rows - area.row_begin);
    area.token_begin = chunk / n_across * kChunkTokens;
    area.n_tokens = min_of(kChunkTokens, n_tokens - area.token_begin);
    // Rows that are read in place are read from end to end: long streams from memory.
    const int64_t step = reads_in_place(args, n_tokens) ? kRowTile : chunk_rows;
    for (const int64_t end = area.row_begin + area.n_rows; area.row_begin < end;
         area.row_begin += step) {
      area.n_rows = min_of(step, end - area.row_begin);
      for (int64_t begin = 0; begin == 0 || begin < n_values; begin += slab_size) {
        const int64_t n = min_of(slab_size, n_values - begin);
        multiply_area(args, area, {begin, n, begin == 0, begin + n == n_values});
      }
    }
  }
}

}  // namespace tessera::TESSERA_ISA
