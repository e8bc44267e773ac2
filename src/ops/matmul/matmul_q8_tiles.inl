// The products of q8 blocks on AMX tiles: included by matmul_q8.inl.
//
// A block's 32 values fill half of a tile's depth, and no two blocks may share a sum of integers:
// each has scales of its own. Little is lost by it: sixteen tokens x one block of 16 rows pass the
// tiles in 26 cycles, store to memory included, but then each of the 16 vectors of sums takes a
// subtraction (the conversion, see kBias), a product of the scales and a fused step each for scale
// and minimum. While tiles are in use, and for some 300 cycles after, products of 512 bits run on
// one port of two, additions on both (measured: Xeon, family 6, model 207): 48 cycles, which bind.
// So conversion is an addition, and the tiles work meanwhile. Together that takes some 55 cycles in
// a loop of its own, but about 100 here, and the VNNI row 115 to 120 (512x1536x576, one thread,
// neighbours busy): its loads of scales and sums are what is left to hide.

#include "cpu/tiles.inl"
#include "ops/matmul/matmul_q8_formats.inl"

namespace tessera::TESSERA_ISA {
namespace {
namespace q8 {

// Three sums in turn, the tokens, and the panel's two vectors of rows.
constexpr int kSumTile = 0, kTokensTile = 3, kRowsTile = 4;

/// The thread's tiles have their shapes while this lives.
class TileSetup {
 public:
  TileSetup() = default;
  ~TileSetup() { release_tiles(); }
  TileSetup(const TileSetup&) = delete;
  TileSetup& operator=(const TileSetup&) = delete;

  void expect(int64_t n_tokens) {
    if (n_tokens == n_tokens_) return;
    n_tokens_ = n_tokens;
    TileConfig config;
    for (int i = kSumTile; i < kTokensTile; ++i) config.set(i, n_tokens, 64);
    config.set(kTokensTile, n_tokens, 32);
    for (int r = 0; r < kPanelVecs; ++r) config.set(kRowsTile + r, 8, 64);
    configure_tiles(config);
  }

 private:
  int64_t n_tokens_ = 0;
};

/// Blocks between two visits to a token's sums in y: 16 tokens x 2 vectors do not fit into the
/// registers, so half of the tokens at a time see a group.
constexpr int kGroupBlocks = 3, kGroupProducts = kGroupBlocks * kPanelVecs, kHalfTile = 8;
static_assert(kPanelVecs == 2 && kTokenTile == 2 * kHalfTile && kGroupProducts % 3 == 0);

// Sums of integers start from the bits of 1.5 * 2^23: below 2^22 they are then, as floats, the sums
// plus kBias, and a subtraction converts them exactly.
constexpr float kBias = 0x1.8p23f;
constexpr int32_t kBiasBits = 0x4b400000;
alignas(64) constexpr int32_t kFloatBias[kLanes] = {
    kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits,
    kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits, kBiasBits};
static_assert(32 * 127 * 128 < 1 << 22);

/// The integer sums of a group of blocks x 16 tokens, in the order of blocks and, within a block,
/// vectors: 6 KiB.
using GroupSums = int32_t[kGroupProducts][kTokenTile][kLanes];

/// Operands of a panel x 16 tokens.
struct TileOperands {
  const Panel& panel;
  const int8_t* q;  // the tokens' values of the slab's first block
  int64_t q_stride, n_products;
  // Where the scales and sums of the tokens begin; tokens that are missing are the last one again.
  const float *scale[kTokenTile] = {}, *sum[kTokenTile] = {};
};

/// Starts product i = 0, 1, ... of the tile and stores product i - 2, whose latency has passed by
/// then. kSlot = i mod 6; `group` receives the sums of the group of i, `before` of the one before.
template <int kSlot>
inline void step(const TileOperands& x, int64_t i, GroupSums& before, GroupSums& group) {
  if (i < x.n_products) {
    constexpr int kVec = kSlot % kPanelVecs, kSum = kSumTile + kSlot % 3;
    if (kVec == 0) load_tile<kTokensTile>(x.q + i / kPanelVecs * 32, x.q_stride);
    load_tile<kRowsTile + kVec>(x.panel.codes[i / kPanelVecs][kVec], 64);
    load_tile<kSum>(kFloatBias, 0);
    multiply_tiles_int8<kSum, kTokensTile, kRowsTile + kVec>();
  }
  if (i - 2 < x.n_products) {
    store_tile<kSumTile + (kSlot + 1) % 3>(
        kSlot >= 2 ? group[kSlot - 2] : before[kGroupProducts - 2 + kSlot], 64);
  }
}

/// Tokens kFirst to kFirst + 7 gain block b, the kBlock-th of its group.
template <typename Format, int kFirst, int kBlock>
[[gnu::always_inline]] inline void add_block(const TileOperands& x, const GroupSums& group,
                                             int64_t b, Vec (&acc)[kHalfTile][kPanelVecs]) {
  TESSERA_UNROLL
  for (int t = 0; t < kHalfTile; ++t) {
    const Vec x_scale = splat(x.scale[kFirst + t][b]), x_sum = splat(x.sum[kFirst + t][b]);
    TESSERA_UNROLL
    for (int r = 0; r < kPanelVecs; ++r) {
      const Vec biased =
          load(reinterpret_cast<const float*>(group[kBlock * kPanelVecs + r][kFirst + t]));
      const Vec dot = biased - splat(kBias);
      acc[t][r] = fmadd(dot, x.panel.scale[b][r] * x_scale, acc[t][r]);
      if (Format::kHasMinimum) acc[t][r] = fmadd(x.panel.minimum[b][r], x_sum, acc[t][r]);
    }
  }
}

/// Half of the tokens gain the blocks of the group that begins at `begin`, while the tiles make the
/// next one's products.
template <typename Format, int kHalf>
inline void add_group(const TileOperands& x, int64_t begin, GroupSums& group, GroupSums& next,
                      Vec (*sums)[kPanelVecs]) {
  static_assert(kGroupBlocks == 3);
  constexpr int kFirst = kHalf * kHalfTile, kSlot = kHalf * kGroupBlocks;
  const int64_t n_blocks = x.n_products / kPanelVecs;
  const int64_t i = (begin + kGroupBlocks) * kPanelVecs + kSlot;
  Vec acc[kHalfTile][kPanelVecs];
  TESSERA_UNROLL
  for (int t = 0; t < kHalfTile; ++t) {
    TESSERA_UNROLL
    for (int r = 0; r < kPanelVecs; ++r) acc[t][r] = sums[kFirst + t][r];
  }
  step<kSlot>(x, i, group, next);
  add_block<Format, kFirst, 0>(x, group, begin, acc);
  step<kSlot + 1>(x, i + 1, group, next);
  if (begin + 1 < n_blocks) add_block<Format, kFirst, 1>(x, group, begin + 1, acc);
  step<kSlot + 2>(x, i + 2, group, next);
  if (begin + 2 < n_blocks) add_block<Format, kFirst, 2>(x, group, begin + 2, acc);
  TESSERA_UNROLL
  for (int t = 0; t < kHalfTile; ++t) {
    TESSERA_UNROLL
    for (int r = 0; r < kPanelVecs; ++r) sums[kFirst + t][r] = acc[t][r];
  }
}

/// A panel x n_tokens <= kTokenTile tokens.
template <typename Format>
void multiply_panel(const MatmulCpuArgs& args, const Panel& panel, int64_t i_row, int64_t i_token,
                    int64_t n_tokens, const Slab& slab) {
  const int64_t n_row_blocks = args.x.n_cols / 32;
  const unsigned char* row = row_of<const unsigned char>(args.x, i_token);
  TileOperands x = {.panel = panel,
                    .q = reinterpret_cast<const int8_t*>(row + 8 * n_row_blocks) + 32 * slab.begin,
                    .q_stride = args.x.stride_bytes,
                    .n_products = slab.n * kPanelVecs};
  for (int64_t t = 0; t < kTokenTile; ++t) {
    x.scale[t] = row_of<const float>(args.x, i_token + min_of(t, n_tokens - 1)) + slab.begin;
    x.sum[t] = x.scale[t] + n_row_blocks;
  }
  const int64_t n_vecs = min_of(kPanelVecs, chunks_of(args.y.n_cols - i_row, kLanes));
  Vec sums[kTokenTile][kPanelVecs];
  for (int64_t t = 0; t < kTokenTile; ++t) {
    for (int64_t r = 0; r < kPanelVecs; ++r) {
      sums[t][r] = t < n_tokens && r < n_vecs
                       ? sums_so_far(args, i_token + t, i_row + r * kLanes, slab)
                       : Vec{};
    }
  }
  // Sums of missing tokens are whatever was there: they go nowhere.
  alignas(64) GroupSums groups[2];
  step<0>(x, 0, groups[1], groups[0]);
  step<1>(x, 1, groups[1], groups[0]);
  step<2>(x, 2, groups[1], groups[0]);
  step<3>(x, 3, groups[1], groups[0]);
  step<4>(x, 4, groups[1], groups[0]);
  step<5>(x, 5, groups[1], groups[0]);
  int i_group = 0;
  for (int64_t b = 0; b < slab.n; b += kGroupBlocks, i_group ^= 1) {
    add_group<Format, 0>(x, b, groups[i_group], groups[i_group ^ 1], sums);
    if (n_tokens > kHalfTile || b + kGroupBlocks < slab.n) {
      add_group<Format, 1>(x, b, groups[i_group], groups[i_group ^ 1], sums);
    }
  }
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t r = 0; r < n_vecs; ++r) {
      put_sums(args, i_token + t, i_row + r * kLanes, slab, sums[t][r]);
    }
  }
}

/// A token alone is another row's work.
template <typename Format>
void multiply_one_token(const MatmulCpuArgs&, int64_t, int64_t, const Slab&) {}

}  // namespace q8
}  // namespace
}  // namespace tessera::TESSERA_ISA
