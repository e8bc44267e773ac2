// y = x w^T with q8 activations and block formats, on the AVX tiers. The lanes of a
// vector are neighbouring rows of w.
//
// The products of the 32 (or 16) values that share a scale are summed as integers, exactly. Then,
// part after part,
//   y = y + integer * (w scale * x scale), y = y + w minimum * x sum
// each fused: the same bits for every M, and the same on all AVX tiers.

#if TESSERA_TIER == TESSERA_TIER_AMX
#include "ops/matmul/matmul_q8_tiles.inl"
#else
#include "ops/matmul/matmul_q8_dots.inl"
#endif
#include "ops/matmul/matmul_q8_k_formats.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

/// One panel of rows. `next_row`: the first of those that this thread will need next, as far as can
/// be told.
template <typename Format>
void multiply_tokens(const MatmulCpuArgs& args, int64_t i_row, int64_t next_row,
                     int64_t token_begin, int64_t token_end, const Slab& slab) {
  const bool prefetches = next_row + kPanelRows <= args.w.n_rows;
  alignas(64) unsigned char copy[kLanes * row_bytes<Format>(kSlabBlocks)];
  Panel panel;
  for (int64_t r = 0; r < kPanelVecs; ++r) {
    // A vector of rows wholly behind the last one: its results go nowhere.
    const int64_t first = min_of(i_row + r * kLanes, args.w.n_rows - 1);
    const RowTile tile = row_tile<Format>(args.w, first, slab, copy);
    const Ints offsets = lane_multiples(tile.stride);
    Prefetcher next({tile.data + (next_row - i_row) * tile.stride, tile.stride},
                    row_bytes<Format>(slab.n));
    for (int64_t b = 0; b < slab.n; b += Format::kSubBlocks) {
      typename Format::Words words;
      Format::load(tile.data + row_bytes<Format>(b), tile.stride, offsets, words);
      if (prefetches) next.advance(kLanes * Format::kBytes);
      for (int s = 0; s < Format::kSubBlocks; ++s) {
        const BlockOfRows& w = Format::sub_block(words, s);
        TESSERA_UNROLL
        for (int g = 0; g < 8; ++g) panel.codes[b + s][r][g] = w.codes[g];
        for (int p = 0; p < Format::kParts; ++p) {
          const int64_t part = (b + s) * Format::kParts + p;
          panel.scale[part][r] = w.scale[p];
          if (Format::kHasMinimum) panel.minimum[part][r] = w.minimum[p];
        }
      }
    }
  }
  TileSetup setup;
  // Tiles of vector instructions of about equal size: 8 tokens as 4 and 4, not 6 and 2.
  const int64_t n_tokens = token_end - token_begin, n_tiles = chunks_of(n_tokens, kTokenTile);
  const int64_t tile_tokens = kHasTiles ? kTokenTile : chunks_of(n_tokens, n_tiles);
  for (int64_t t = token_begin; t < token_end; t += tile_tokens) {
    const int64_t n = min_of(tile_tokens, token_end - t);
    setup.expect(n);
    multiply_panel<Format>(args, panel, i_row, t, n, slab);
  }
}

template <typename Format>
void multiply_all(const MatmulCpuArgs& args, Team& team) {
  const int64_t n_tokens = live_rows(args.live, args.y.n_rows), n_rows = args.y.n_cols;
  const int64_t n_blocks = args.x.n_cols / 32;
  const bool one_token = n_tokens == 1 && !kHasTiles;
  // Few tokens wait for rows of w: chunks of several panels, so that the next can be asked for.
  const int64_t chunk_rows =
      n_tokens <= 32 && !kHasTiles ? few_tokens_chunk_rows(n_rows) : kPanelRows;
  const int64_t n_across = chunks_of(n_rows, chunk_rows);
  const int64_t n_chunks = n_across * chunks_of(n_tokens, kChunkTokens);
  for (int64_t chunk; (chunk = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t row_begin = chunk % n_across * chunk_rows;
    const int64_t row_end = min_of(row_begin + chunk_rows, n_rows);
    const int64_t token_begin = chunk / n_across * kChunkTokens;
    const int64_t token_end = min_of(token_begin + kChunkTokens, n_tokens);
    for (int64_t begin = 0; begin == 0 || begin < n_blocks; begin += kSlabBlocks) {
      const int64_t n = min_of(kSlabBlocks, n_blocks - begin);
      const Slab slab = {begin, n, begin == 0, begin + n == n_blocks};
      if (one_token) {
        multiply_one_token<Format>(args, row_begin, row_end, slab);
      } else {
        // With all threads at work, each takes about every size()th chunk.
        const int64_t next_chunk_row = row_begin + team.size() * chunk_rows;
        for (int64_t r = row_begin; r < row_end; r += kPanelRows) {
          const int64_t next_row = r + kPanelRows < row_end ? r + kPanelRows : next_chunk_row;
          multiply_tokens<Format>(args, r, next_row, token_begin, token_end, slab);
        }
      }
    }
  }
}

}  // namespace q8
}  // namespace

void matmul_q8(const MatmulCpuArgs& args, Team& team) noexcept {
  switch (args.w_type) {
    case Storage::kQ4_0:
      return q8::multiply_all<q8::FormatQ4_0>(args, team);
    case Storage::kQ4_1:
      return q8::multiply_all<q8::FormatQ4_1>(args, team);
    case Storage::kQ5_0:
      return q8::multiply_all<q8::FormatQ5_0>(args, team);
    case Storage::kQ5_1:
      return q8::multiply_all<q8::FormatQ5_1>(args, team);
    case Storage::kQ8_0:
      return q8::multiply_all<q8::FormatQ8_0>(args, team);
    case Storage::kQ4_K:
      return q8::multiply_all<q8::FormatQ4_K>(args, team);
    case Storage::kQ5_K:
      return q8::multiply_all<q8::FormatQ5_K>(args, team);
#if TESSERA_TIER != TESSERA_TIER_AMX  // no tiles for sums of 16 values
    case Storage::kQ2_K:
      return q8::multiply_all<q8::FormatQ2_K>(args, team);
    case Storage::kQ3_K:
      return q8::multiply_all<q8::FormatQ3_K>(args, team);
    case Storage::kQ6_K:
      return q8::multiply_all<q8::FormatQ6_K>(args, team);
#endif
    default:
      return;  // the row supports no other
  }
}

}  // namespace tessera::TESSERA_ISA
