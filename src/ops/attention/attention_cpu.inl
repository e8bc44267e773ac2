#include "ops/attention/attention_cpu.hpp"

#include "ops/attention/attend_block.inl"

namespace tessera::TESSERA_ISA {
namespace {

/// Positions begin .. end - 1.
struct Range {
  int64_t begin, end;
};

inline Range intersection(Range a, Range b) {
  const Range both = {max_of(a.begin, b.begin), min_of(a.end, b.end)};
  return both.begin < both.end ? both : Range{0, 0};
}

inline int64_t sequence_of(const AttentionArgs& args, int64_t t) {
  return args.batch.sequences ? args.batch.sequences[t] : 0;
}

/// The keys that a query sees.
inline Range visible_keys(const AttentionArgs& args, int64_t t) {
  const int64_t position =
      args.batch.positions ? args.batch.positions[t] : args.position_offset + t;
  const int64_t begin = args.window > 0 ? position - args.window + 1 : 0;
  const int64_t end = args.causal ? position + 1 : args.max_keys;
  return intersection({begin, end}, {0, args.max_keys});
}

/// Some heads that share a key head, for some tokens of one sequence: rows [n_tokens, n_heads].
struct Task {
  int64_t first_token, n_tokens, first_head, n_heads, i_kv_head;
};

KeyBlock keys_at(const AttentionArgs& args, const Task& task, Range positions) {
  const uint32_t* pages =
      args.batch.positions
          ? row_of<const uint32_t>(args.batch.block_tables, sequence_of(args, task.first_token))
          : nullptr;
  KeyBlock block;
  for (int64_t j = positions.begin; j < positions.end; ++j) {
    const int64_t i_page = pages ? pages[j / args.k.page_tokens] : 0;
    const int64_t i_slot = pages ? j % args.k.page_tokens : j;
    block.k[j - positions.begin] = slot_of(args.k, i_page, task.i_kv_head, i_slot);
    block.v[j - positions.begin] = slot_of(args.v, i_page, task.i_kv_head, i_slot);
  }
  return block;
}

/// Keys and values of a block in f32, for passes of many queries over the same f16 keys: at 48
/// queries of a 4-query tile each value would be converted 12 times.
struct WideBlock {
  static constexpr int64_t kMinRows = 8, kMaxHeadDim = 128;  // 32 KiB: stays in the L1 cache
  float k[kBlockKeys * kMaxHeadDim], v[kBlockKeys * kMaxHeadDim];

  static void widen(const unsigned char* f16, float* f32, int64_t n) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(f32 + i, load_f16(f16 + 2 * i));
    if (i < n) store_first(f32 + i, load_f16_first(f16 + 2 * i, n - i), n - i);
  }

  /// Converts the block and returns pointers to the copy.
  KeyBlock fill(const KeyBlock& f16, int n_keys, int64_t head_dim) {
    KeyBlock wide;
    for (int j = 0; j < n_keys; ++j) {
      widen(f16.k[j], k + j * head_dim, head_dim);
      widen(f16.v[j], v + j * head_dim, head_dim);
      wide.k[j] = reinterpret_cast<const unsigned char*>(k + j * head_dim);
      wide.v[j] = reinterpret_cast<const unsigned char*>(v + j * head_dim);
    }
    return wide;
  }
};

/// The task's rows over the keys within `keys`, block by block; blocks start at multiples of
/// kBlockKeys.
void attend_range(const AttentionArgs& args, const Task& task, Range keys, Rows* rows) {
  const Scoring scoring = {args.q.head_dim, args.scale, args.soft_cap};
  for (int64_t at = keys.begin / kBlockKeys * kBlockKeys; at < keys.end; at += kBlockKeys) {
    const Range block_keys = intersection(keys, {at, at + kBlockKeys});
    // Tokens that see the same keys of the block go together.
    for (int64_t i = 0, next; i < task.n_tokens; i = next) {
      const Range seen = intersection(visible_keys(args, task.first_token + i), block_keys);
      for (next = i + 1; next < task.n_tokens; ++next) {
        const Range other = intersection(visible_keys(args, task.first_token + next), block_keys);
        if (other.begin != seen.begin || other.end != seen.end) break;
      }
      if (seen.begin == seen.end) continue;
      const KeyBlock block = keys_at(args, task, seen);
      const int n_keys = static_cast<int>(seen.end - seen.begin);
      const int begin = static_cast<int>(i * task.n_heads),
                end = static_cast<int>(next * task.n_heads);
      if (!args.k.f16) {
        attend_block<false>(scoring, block, n_keys, rows, begin, end);
      } else if (end - begin < WideBlock::kMinRows || scoring.head_dim > WideBlock::kMaxHeadDim) {
        attend_block<true>(scoring, block, n_keys, rows, begin, end);
      } else {
        WideBlock wide;
        attend_block<false>(scoring, wide.fill(block, n_keys, scoring.head_dim), n_keys, rows,
                            begin, end);
      }
    }
  }
}

void clear(float* values, int64_t n) {
  memset(values, 0, static_cast<size_t>(n) * sizeof(float));
}

/// Rows of the task with nothing summed yet; row i keeps its values at partials + i * stride.
void begin_rows(const AttentionArgs& args, const Task& task, float* partials, int64_t stride,
                Rows* rows) {
  const int64_t n_rows = task.n_tokens * task.n_heads;
  for (int64_t i = 0; i < n_rows; ++i) {
    rows->q[i] =
        head_of(args.q, task.first_token + i / task.n_heads, task.first_head + i % task.n_heads);
    rows->o[i] = partials + i * stride;
    clear(rows->o[i], args.q.head_dim);
    rows->maximum[i] = -__builtin_inff();
    rows->sum[i] = 0;
  }
}

/// Adds a split's state to a query's: the larger maximum becomes that of both.
void merge(float* maximum, float* sum, float* o, float split_maximum, float split_sum,
           const float* split_o, int64_t head_dim) {
  const float larger = split_maximum > *maximum ? split_maximum : *maximum;
  const float shift = larger == -__builtin_inff() ? 0.0f : larger;
  const float keep = exp(splat(*maximum - shift))[0];
  const float add = exp(splat(split_maximum - shift))[0];
  *maximum = larger;
  *sum = *sum * keep + split_sum * add;
  for (int64_t i = 0; i < head_dim; ++i) o[i] = o[i] * keep + split_o[i] * add;
}

/// A query without weight (no visible key, or scores of -infinity only) gives zeros.
void divide(float* o, float sum, int64_t head_dim) {
  for (int64_t i = 0; i < head_dim; ++i) o[i] = sum == 0 ? 0 : o[i] / sum;
}

/// All splits of a task, one after the other, into y.
void attend_task(const AttentionArgs& args, const Task& task) {
  float partials[kAttentionPartial];
  const int64_t head_dim = args.q.head_dim, n_rows = task.n_tokens * task.n_heads;
  Rows rows;
  float maximum[kMaxRows], sum[kMaxRows];
  float* y[kMaxRows];
  for (int64_t i = 0; i < n_rows; ++i) {
    y[i] = head_of(args.y, task.first_token + i / task.n_heads, task.first_head + i % task.n_heads);
    clear(y[i], head_dim);
    maximum[i] = -__builtin_inff();
    sum[i] = 0;
  }
  Range keys = {args.max_keys, 0};
  for (int64_t i = 0; i < task.n_tokens; ++i) {
    const Range seen = visible_keys(args, task.first_token + i);
    keys = {min_of(keys.begin, seen.begin), max_of(keys.end, seen.end)};
  }
  for (int64_t at = keys.begin / kAttentionSplit * kAttentionSplit; at < keys.end;
       at += kAttentionSplit) {
    begin_rows(args, task, partials, head_dim, &rows);
    attend_range(args, task, intersection(keys, {at, at + kAttentionSplit}), &rows);
    for (int64_t i = 0; i < n_rows; ++i) {
      merge(maximum + i, sum + i, y[i], rows.maximum[i], rows.sum[i], rows.o[i], head_dim);
    }
  }
  for (int64_t i = 0; i < n_rows; ++i) divide(y[i], sum[i], head_dim);
}

/// Heads that go together: those of one key head, as many as fit.
struct HeadGroups {
  int64_t n_heads, per_kv_head;
  explicit HeadGroups(const AttentionArgs& args) {
    const int64_t group = args.q.n_heads / args.n_kv_heads;
    n_heads = min_of(group, min_of(kMaxRows, kAttentionPartial / max_of(1, args.q.head_dim)));
    per_kv_head = chunks_of(group, n_heads);
  }
  Task task(const AttentionArgs& args, int64_t i_group, int64_t first_token,
            int64_t n_tokens) const {
    const int64_t group = args.q.n_heads / args.n_kv_heads, i_kv_head = i_group / per_kv_head;
    const int64_t begin = i_group % per_kv_head * n_heads;
    return {.first_token = first_token,
            .n_tokens = n_tokens,
            .first_head = i_kv_head * group + begin,
            .n_heads = min_of(n_heads, group - begin),
            .i_kv_head = i_kv_head};
  }
};

/// Where the state of one split of one query waits: maximum, sum, values.
float* partial_of(const AttentionArgs& args, int64_t t, int64_t i_head, int64_t i_split) {
  const int64_t n_splits = chunks_of(args.max_keys, kAttentionSplit);
  return args.partials +
         ((t * args.q.n_heads + i_head) * n_splits + i_split) * (2 + args.q.head_dim);
}

/// One split of the queries of one token.
void attend_split(const AttentionArgs& args, const Task& task, int64_t i_split) {
  const Range seen = intersection(visible_keys(args, task.first_token),
                                  {i_split * kAttentionSplit, (i_split + 1) * kAttentionSplit});
  if (seen.begin == seen.end) return;
  const int64_t n_splits = chunks_of(args.max_keys, kAttentionSplit);
  float* first = partial_of(args, task.first_token, task.first_head, i_split);
  const int64_t stride = n_splits * (2 + args.q.head_dim);
  Rows rows;
  begin_rows(args, task, first + 2, stride, &rows);
  attend_range(args, task, seen, &rows);
  for (int64_t i = 0; i < task.n_heads; ++i) {
    first[i * stride] = rows.maximum[i];
    first[i * stride + 1] = rows.sum[i];
  }
}

void merge_splits(const AttentionArgs& args, int64_t t, int64_t i_head) {
  const Range seen = visible_keys(args, t);
  const int64_t head_dim = args.q.head_dim;
  float* y = head_of(args.y, t, i_head);
  clear(y, head_dim);
  float maximum = -__builtin_inff(), sum = 0;
  for (int64_t i = seen.begin / kAttentionSplit; i * kAttentionSplit < seen.end; ++i) {
    const float* partial = partial_of(args, t, i_head, i);
    merge(&maximum, &sum, y, partial[0], partial[1], partial + 2, head_dim);
  }
  divide(y, sum, head_dim);
}

void attend_in_splits(const AttentionArgs& args, int64_t n_tokens, Team& team) {
  const HeadGroups groups(args);
  const int64_t n_groups = args.n_kv_heads * groups.per_kv_head;
  // Splits that some token sees.
  int64_t end = 0;
  for (int64_t t = 0; t < n_tokens; ++t) end = max_of(end, visible_keys(args, t).end);
  const int64_t n_splits = chunks_of(end, kAttentionSplit);
  const int64_t n_chunks = n_tokens * n_groups * n_splits;
  for (int64_t c; (c = team.next_chunk(n_chunks)) < n_chunks;) {
    const int64_t t = c / n_splits / n_groups;
    if (sequence_of(args, t) < 0) continue;
    attend_split(args, groups.task(args, c / n_splits % n_groups, t, 1), c % n_splits);
  }
  team.barrier();
  // A token at a time: a thread alone does it sooner than two could agree to share.
  for (int64_t t; (t = team.next_chunk(n_tokens)) < n_tokens;) {
    if (sequence_of(args, t) < 0) continue;
    for (int64_t i_head = 0; i_head < args.q.n_heads; ++i_head) merge_splits(args, t, i_head);
  }
}

}  // namespace

void attend(const AttentionArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.q.n_tokens);
  if (args.partials) return attend_in_splits(args, n_tokens, team);

  const HeadGroups groups(args);
  const int64_t n_groups = args.n_kv_heads * groups.per_kv_head;
  const int64_t fitting_rows = min_of(kMaxRows, kAttentionPartial / max_of(1, args.q.head_dim));
  // One token a chunk where there are few, else as many as share a pass over the keys well.
  const int64_t chunk_tokens =
      args.q.n_tokens <= kAttentionSplitTokens ? 1 : min_of(16, fitting_rows / groups.n_heads);
  const int64_t n_tiles = chunks_of(n_tokens, chunk_tokens);
  const int64_t n_chunks = n_tiles * n_groups;
  for (int64_t c; (c = team.next_chunk(n_chunks)) < n_chunks;) {
    // The last tokens of a prompt see most keys: longest work first.
    const int64_t begin = (n_tiles - 1 - c / n_groups) * chunk_tokens;
    const int64_t end = min_of(begin + chunk_tokens, n_tokens);
    for (int64_t t = begin, next; t < end; t = next) {
      for (next = t + 1; next < end && sequence_of(args, next) == sequence_of(args, t); ++next) {
      }
      if (sequence_of(args, t) >= 0) {
        attend_task(args, groups.task(args, c % n_groups, t, next - t));
      }
    }
  }
}

}  // namespace tessera::TESSERA_ISA
