#include "ops/attention/attention_rows_webgpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/checked.hpp"

namespace tessera {
namespace {

constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kFour = 4;

// attention_chunks.wgsl, attention_merge.wgsl
constexpr int64_t kChunkKeys = 64;
constexpr int64_t kMaxChunkHeads = 8;
constexpr int64_t kExchangeStride = 264;
// attention_heads.wgsl: more tokens make workgroups enough of chunks.
constexpr int64_t kMaxHeadTokens = 8;
// More tokens than this of one sequence read their keys too often: tiles share them.
constexpr int64_t kMaxChunkTokens = 64;
constexpr int64_t kMaxTokensPerSequence = 4;
constexpr int64_t kMaxScratchBytes = int64_t{64} << 20;
constexpr int64_t kStatsBytes = 2 * sizeof(float);

/// Params of attention_visibility.wgsl.
struct Params {
  uint32_t n_tokens, n_heads, n_kv_heads, window;
  float query_scale, capped_scale;
  uint32_t n_keys;
  int32_t position_offset;
  uint32_t n_chunks;
  uint32_t y_first, y_token_stride, y_head_stride;
  uint32_t q_first, q_token_stride, q_head_stride;
  uint32_t k_first, k_page_stride, k_head_stride, k_token_stride;
  uint32_t v_first, v_page_stride, v_head_stride, v_token_stride;
  uint32_t positions_first, sequences_first, live_first, tables_first, tables_stride;
};

/// Positions and windows are i32 in the kernels; nothing lies further away than this.
constexpr int64_t kFar = int64_t{1} << 30;

int64_t fours_of(const AttentionCall& call) {
  return ceil_div(call.head_dim(), kFour);
}

/// 4 when every head of every operand can be addressed as vec4s.
int64_t width_of(const AttentionCall& call) {
  for (const Tensor* tensor : {&call.y, &call.q, &call.k, &call.v}) {
    const int64_t step = kFour * info(tensor->dtype).block_bytes;
    if (tensor->offset_bytes % step != 0 || tensor->shape[-1] % kFour != 0) return 1;
    for (int i = 0; i + 1 < tensor->shape.rank(); ++i) {
      if (tensor->stride_bytes[static_cast<size_t>(i)] % step != 0) return 1;
    }
  }
  return kFour;
}

uint32_t stride_of(const Tensor& tensor, int dimension, int64_t width) {
  const int64_t unit_bytes = width * info(tensor.dtype).block_bytes;
  return static_cast<uint32_t>(tensor.stride_bytes[static_cast<size_t>(dimension)] / unit_bytes);
}

/// Chunks that the keys of one query may touch.
int64_t chunks_of(const AttentionCall& call) {
  const int64_t n_chunks = std::max<int64_t>(1, ceil_div(call.max_keys(), kChunkKeys));
  if (call.window == 0) return n_chunks;
  return std::min(n_chunks, ceil_div(std::min(call.window, kFar) - 1, kChunkKeys) + 1);
}

Params params_of(const AttentionCall& call, int64_t width,
                 const webgpu::Capabilities& capabilities) {
  constexpr float kLog2E = 1.44269504f;
  const bool capped = call.soft_cap > 0;
  const auto first = [&](const Tensor& tensor) {
    return rows_view(tensor, capabilities, width).first;
  };
  const int token = call.paged() ? 2 : 0;  // dimension of k and v
  Params params = {.n_tokens = static_cast<uint32_t>(call.n_tokens()),
                   .n_heads = static_cast<uint32_t>(call.n_heads()),
                   .n_kv_heads = static_cast<uint32_t>(call.n_kv_heads()),
                   .window = static_cast<uint32_t>(std::min(call.window, kFar)),
                   .query_scale = capped ? call.scale / call.soft_cap : call.scale * kLog2E,
                   .capped_scale = call.soft_cap * kLog2E,
                   .n_keys = call.paged() ? 0 : static_cast<uint32_t>(call.k.dim(0)),
                   .position_offset = static_cast<int32_t>(call.position_offset),
                   .n_chunks = static_cast<uint32_t>(chunks_of(call)),
                   .y_first = first(call.y),
                   .y_token_stride = stride_of(call.y, 0, width),
                   .y_head_stride = stride_of(call.y, 1, width),
                   .q_first = first(call.q),
                   .q_token_stride = stride_of(call.q, 0, width),
                   .q_head_stride = stride_of(call.q, 1, width),
                   .k_first = first(call.k),
                   .k_page_stride = call.paged() ? stride_of(call.k, 0, width) : 0,
                   .k_head_stride = stride_of(call.k, 1, width),
                   .k_token_stride = stride_of(call.k, token, width),
                   .v_first = first(call.v),
                   .v_page_stride = call.paged() ? stride_of(call.v, 0, width) : 0,
                   .v_head_stride = stride_of(call.v, 1, width),
                   .v_token_stride = stride_of(call.v, token, width),
                   .positions_first = rows_view(call.positions, capabilities).first,
                   .sequences_first = rows_view(call.sequences, capabilities).first,
                   .live_first = rows_view(call.live, capabilities).first,
                   .tables_first = rows_view(call.tables, capabilities).first,
                   .tables_stride = rows_view(call.tables, capabilities).stride};
  return params;
}

/// Adds the bindings that attention_visibility.wgsl and, with `keys`, attention_operands.wgsl see
/// behind the kernel's own, and returns the template's values.
webgpu::TemplateValues add_bindings(const AttentionCall& call, int64_t width, bool keys,
                                    std::vector<webgpu::Binding>& bindings) {
  const auto batch = static_cast<int64_t>(bindings.size());
  if (call.paged()) {
    bindings.push_back(webgpu::read(call.positions));
    bindings.push_back(webgpu::read(call.sequences));
    if (call.live.defined()) bindings.push_back(webgpu::read(call.live));
  }
  const auto tables = static_cast<int64_t>(bindings.size());
  if (call.paged() && keys) bindings.push_back(webgpu::read(call.tables));
  const auto uniform = static_cast<int64_t>(bindings.size());
  bindings.push_back(webgpu::uniform());
  constexpr std::array<const char*, 3> kTake = {"all", "lone", "runs"};
  return {{"HEAD_DIM", call.head_dim()},
          {"TAKE", std::string(kTake[static_cast<size_t>(call.tokens)])},
          {"WIDTH", width},
          {"KV", std::string(name(call.k.dtype))},
          {"PAGED", int64_t{call.paged()}},
          {"PAGE_TOKENS", call.paged() ? call.k.dim(2) : 1},
          {"CAP", int64_t{call.soft_cap > 0}},
          {"CAUSAL", int64_t{call.causal}},
          {"LIVE", int64_t{call.live.defined()}},
          {"BATCH", batch},
          {"TABLES", tables},
          {"UNIFORM", uniform},
          {"FOURS", fours_of(call)}};
}

void append(webgpu::TemplateValues& values, const webgpu::TemplateValues& more) {
  values.insert(values.end(), more.begin(), more.end());
}

bool supports_operands(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  for (const Tensor* tensor : {&call.y, &call.q, &call.k, &call.v}) {
    if (!fits_binding(*tensor, capabilities)) return false;
  }
  if (call.paged() && !(call.k.is_dense() && call.v.is_dense())) return false;
  return call.head_dim() <= kMaxHeadDim && std::abs(call.position_offset) + call.n_tokens() < kFar;
}

}  // namespace

AttentionCall attention_call(const Attention::Args& args) {
  return {.y = args.y,
          .q = args.q,
          .k = args.k,
          .v = args.v,
          .positions = {},
          .sequences = {},
          .tables = {},
          .live = {},
          .scale = args.scale,
          .soft_cap = args.soft_cap,
          .window = args.window,
          .position_offset = args.position_offset,
          .causal = args.causal};
}

AttentionCall attention_call(const PagedAttention::Args& args) {
  return {.y = args.y,
          .q = args.q,
          .k = args.k_pages,
          .v = args.v_pages,
          .positions = args.positions,
          .sequences = args.sequences,
          .tables = args.block_tables,
          .live = args.live,
          .scale = args.scale,
          .soft_cap = args.soft_cap,
          .window = args.window};
}

// Chunks of keys.

namespace {

/// How attention_chunks.wgsl divides a head and the query heads of a KV head. Workgroup memory:
/// queries 16 `heads` fours, scores and weights 512 `heads`, and what is exchanged: 1,024 `heads`,
/// or 4,224 a head of a pass. 8 heads of 128 values: 4,096 + 4,096 + 8,192 = 16 KiB.
struct ChunkShape {
  int64_t heads, n_head_blocks, key_fours, value_groups, group_keys, pass_heads, exchange;
};

ChunkShape chunk_shape(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  const int64_t fours = fours_of(call);
  const int64_t group = call.n_heads() / call.n_kv_heads();
  const int64_t most_heads = call.head_dim() > 128 ? kMaxChunkHeads / 2 : kMaxChunkHeads;
  ChunkShape shape = {};
  shape.n_head_blocks = ceil_div(group, most_heads);
  shape.heads = ceil_div(group, shape.n_head_blocks);
  shape.key_fours = ceil_div(fours, kFour);
  shape.value_groups = std::min(kChunkKeys, kWorkgroupThreads / fours);
  shape.group_keys = ceil_div(kChunkKeys, shape.value_groups);
  const int64_t free_bytes =
      capabilities.max_workgroup_bytes - shape.heads * (16 * fours + 8 * kChunkKeys);
  const int64_t pass_bytes = kFour * kExchangeStride * static_cast<int64_t>(sizeof(float));
  shape.pass_heads = std::clamp<int64_t>(free_bytes / pass_bytes, 1, shape.heads);
  shape.exchange =
      std::max(kWorkgroupThreads * shape.heads, kFour * kExchangeStride * shape.pass_heads);
  return shape;
}

}  // namespace

int64_t attention_chunks_scratch_bytes(const AttentionCall& call) {
  const int64_t n_chunks = chunks_of(call);
  if (n_chunks == 1) return 0;
  const int64_t per_chunk = 16 * fours_of(call) + kStatsBytes;
  return round_up<int64_t>(call.n_tokens() * call.n_heads() * n_chunks * per_chunk, 16);
}

namespace {

int64_t n_sequences(const AttentionCall& call) {
  return call.paged() ? call.tables.dim(0) : 1;
}

bool has_room_for_chunks(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  return supports_operands(call, capabilities) &&
         attention_chunks_scratch_bytes(call) <=
             std::min(kMaxScratchBytes, capabilities.max_binding_bytes);
}

}  // namespace

bool supports_attention_chunks(const AttentionCall& call,
                               const webgpu::Capabilities& capabilities) {
  const int64_t most = std::max(kMaxChunkTokens, kMaxTokensPerSequence * n_sequences(call));
  return call.n_tokens() <= most && has_room_for_chunks(call, capabilities);
}

void record_attention_chunks(Queue& queue, std::string_view op, const AttentionCall& call,
                             const Tensor& scratch) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const ChunkShape shape = chunk_shape(call, capabilities);
  const int64_t width = width_of(call);
  const int64_t n_chunks = chunks_of(call);
  const bool whole = n_chunks == 1;
  const Params params = params_of(call, width, capabilities);

  std::vector<webgpu::Binding> bindings = {webgpu::read_write(whole ? call.y : scratch),
                                           webgpu::read(call.q), webgpu::read(call.k),
                                           webgpu::read(call.v)};
  webgpu::TemplateValues values = add_bindings(call, width, true, bindings);
  append(values, {{"HEADS", shape.heads},
                  {"KEY_FOURS", shape.key_fours},
                  {"VALUE_GROUPS", shape.value_groups},
                  {"GROUP_KEYS", shape.group_keys},
                  {"PASS_HEADS", shape.pass_heads},
                  {"EXCHANGE", shape.exchange},
                  {"WHOLE", int64_t{whole}}});
  const int64_t n_groups = call.n_tokens() * call.n_kv_heads() * shape.n_head_blocks * n_chunks;
  webgpu::record(queue, op, {.file = "ops/attention/attention_chunks.wgsl", .values = values},
                 bindings, params, webgpu::fold(n_groups, capabilities));
  if (whole) return;

  bindings = {webgpu::read_write(call.y), webgpu::read(scratch)};
  values = add_bindings(call, width, false, bindings);
  append(values, {{"GROUPS", shape.value_groups}});
  webgpu::record(queue, op, {.file = "ops/attention/attention_merge.wgsl", .values = values},
                 bindings, params, webgpu::fold(call.n_tokens() * call.n_heads(), capabilities));
}

// A workgroup for each head.

namespace {

/// How attention_heads.wgsl is laid out. Workgroup memory: four parts of each product or the sums
/// of all threads, whichever is more, a weight for each key, and 288 bytes. 1,024 threads and keys:
/// 16,512 + 4,096 + 288; 256 threads and 512 keys 8,320 + 2,048 + 288.
struct HeadShape {
  int64_t threads, max_keys, ahead;

  int64_t exchange() const { return kFour * (std::max(max_keys, threads) + 8); }
  int64_t workgroup_bytes() const { return 4 * (exchange() + max_keys) + 288; }
};
// Values that a thread loads ahead are registers, and 1,024 threads have 64 each.
constexpr std::array<HeadShape, 2> kHeadShapes = {{
    {.threads = 1024, .max_keys = 1024, .ahead = 8},
    {.threads = 256, .max_keys = 512, .ahead = 8},
}};

std::optional<HeadShape> head_shape(const webgpu::Capabilities& capabilities) {
  for (const HeadShape& shape : kHeadShapes) {
    if (shape.threads <= capabilities.max_workgroup_threads &&
        shape.workgroup_bytes() <= capabilities.max_workgroup_bytes) {
      return shape;
    }
  }
  return std::nullopt;
}

}  // namespace

bool supports_attention_heads(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  const std::optional<HeadShape> shape = head_shape(capabilities);
  const int64_t seen = call.window > 0 ? std::min(call.window, call.max_keys()) : call.max_keys();
  return shape && seen <= shape->max_keys && call.n_tokens() <= kMaxHeadTokens &&
         supports_operands(call, capabilities);
}

void record_attention_heads(Queue& queue, std::string_view op, const AttentionCall& call) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const HeadShape shape = head_shape(capabilities).value();
  const int64_t width = width_of(call), fours = fours_of(call);
  const int64_t round_keys = shape.threads / kFour, value_groups = shape.threads / fours;
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(call.y), webgpu::read(call.q),
                                           webgpu::read(call.k), webgpu::read(call.v)};
  webgpu::TemplateValues values = add_bindings(call, width, true, bindings);
  append(values, {{"THREADS", shape.threads},
                  {"KEY_FOURS", ceil_div(fours, kFour)},
                  {"MAX_KEYS", shape.max_keys},
                  {"ROUND_KEYS", round_keys},
                  {"ROUNDS", shape.max_keys / round_keys},
                  {"VALUE_GROUPS", value_groups},
                  {"AHEAD", std::min(shape.ahead, ceil_div(shape.max_keys, value_groups))},
                  {"PARTS", shape.threads / (kFour * fours)},
                  {"EXCHANGE", shape.exchange()}});
  webgpu::record(queue, op, {.file = "ops/attention/attention_heads.wgsl", .values = values},
                 bindings, params_of(call, width, capabilities),
                 webgpu::fold(call.n_tokens() * call.n_heads(), capabilities));
}

// Tiles of queries.

namespace {

/// Threads, rows and vec4s of scores of a thread, and whether queries are copied to workgroup
/// memory (attention_tiles.wgsl). More rows a thread read less of workgroup memory a product; fewer
/// make more workgroups: with less than `min_groups` of them a smaller one is better.
struct TileConfig {
  int64_t threads_x, threads_y, thread_rows;
  int64_t min_groups;
  bool staged;
  int64_t thread_keys = 1;

  int64_t threads() const { return threads_x * threads_y; }
  int64_t rows() const { return threads_y * thread_rows; }
  int64_t keys() const { return kFour * threads_x * thread_keys; }
  int64_t thread_fours(int64_t fours) const { return ceil_div(fours, threads_x); }
  int64_t loads(int64_t fours) const { return ceil_div(keys() * fours, threads()); }
  /// Queries, keys or values, weights, parts of maxima, and what is known of rows. 64 rows of 64
  /// values and 32 keys, queries not copied: 8,704 + 8,192 + 2,048 + 768 + 16 = 19,728.
  int64_t workgroup_bytes(int64_t fours) const {
    return 16 *
               (rows() * fours * int64_t{staged} + keys() * (fours | 1) + rows() * keys() / kFour) +
           4 * rows() * threads_x + 12 * rows() + 16;
  }
};

// H200 (132 multiprocessors), 4096 tokens, 16 heads of 64 values: the first 25 TFLOP/s, 21 with
// queries copied. 512 tokens, 9 heads over 3: the second 45 us, the first 73.
// Four workgroups, and one, for each of that many multiprocessors, rounded down.
constexpr int64_t kFourEach = 512, kOneEach = 128;
constexpr std::array<TileConfig, 10> kTileConfigs = {{
    {8, 16, 4, kFourEach, false},
    {8, 16, 2, kOneEach, true},
    {8, 16, 1, 0, true},
    {8, 16, 2, kOneEach, false},
    {8, 16, 1, 0, false},
    {4, 16, 2, kOneEach, true},
    {4, 16, 1, 0, true},
    {4, 16, 2, kOneEach, false},
    {4, 16, 1, 0, false},
    {2, 32, 1, 0, false},
}};
// Registers of a thread, in vec4s: its sums, and what it loads ahead.
constexpr int64_t kMaxThreadFours = 40;

int64_t n_tile_groups(const AttentionCall& call, const TileConfig& config) {
  const int64_t rows = call.n_tokens() * (call.n_heads() / call.n_kv_heads());
  return ceil_div(rows, config.rows()) * call.n_kv_heads();
}

/// The first that fits, and of those that divide the keys likewise (so that results do not depend
/// on the number of queries) the first that makes enough workgroups.
std::optional<TileConfig> tile_config(const AttentionCall& call,
                                      const webgpu::Capabilities& capabilities) {
  const int64_t fours = fours_of(call);
  std::optional<TileConfig> best;
  for (const TileConfig& config : kTileConfigs) {
    if (config.thread_rows * config.thread_fours(fours) + config.loads(fours) > kMaxThreadFours ||
        config.workgroup_bytes(fours) > capabilities.max_workgroup_bytes) {
      continue;
    }
    const bool alike = best && best->keys() == config.keys();
    if (!best || (alike && n_tile_groups(call, *best) < best->min_groups)) best = config;
  }
  return best;
}

}  // namespace

bool supports_attention_tiles(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  return supports_operands(call, capabilities) && tile_config(call, capabilities).has_value();
}

void record_attention_tiles(Queue& queue, std::string_view op, const AttentionCall& call) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const TileConfig config = tile_config(call, capabilities).value();
  const int64_t width = width_of(call);
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(call.y), webgpu::read(call.q),
                                           webgpu::read(call.k), webgpu::read(call.v)};
  webgpu::TemplateValues values = add_bindings(call, width, true, bindings);
  append(values, {{"TX", config.threads_x},
                  {"TY", config.threads_y},
                  {"THREAD_ROWS", config.thread_rows},
                  {"THREAD_KEYS", config.thread_keys},
                  {"THREAD_FOURS", config.thread_fours(fours_of(call))},
                  {"ROWS", config.rows()},
                  {"KEYS", config.keys()},
                  {"KV_STRIDE", fours_of(call) | 1},
                  {"LOADS", config.loads(fours_of(call))},
                  {"UNROLL", fours_of(call) % 2 == 0 ? 2 : 1},
                  {"STAGED", int64_t{config.staged}}});
  webgpu::record(queue, op, {.file = "ops/attention/attention_tiles.wgsl", .values = values},
                 bindings, params_of(call, width, capabilities),
                 webgpu::fold(n_tile_groups(call, config), capabilities));
}

bool supports_mixed_attention(const AttentionCall& call, const webgpu::Capabilities& capabilities) {
  return call.n_tokens() > 1 && n_sequences(call) > 1 && has_room_for_chunks(call, capabilities) &&
         supports_attention_tiles(call, capabilities);
}

void record_mixed_attention(Queue& queue, std::string_view op, const AttentionCall& call,
                            const Tensor& scratch) {
  AttentionCall part = call;
  part.tokens = TokenSet::kRuns;
  record_attention_tiles(queue, op, part);
  part.tokens = TokenSet::kLone;
  record_attention_chunks(queue, op, part, scratch);
}

}  // namespace tessera
