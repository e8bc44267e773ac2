// To be included: which keys a query sees; included by the attention rows' kernels.
//   PAGED     1: positions and sequences come from the batch; 0: dense keys of one sequence
//   CAUSAL    dense keys only: 1: no key behind the query's position
//   LIVE      1: tokens from live[live_first] on are not touched
//   TAKE      'all' tokens; 'lone': only those whose sequence has no other token beside them; 'runs': only
//             the others
//   BATCH     binding of positions; sequences and live follow
//   UNIFORM   binding of params
struct Params {
  n_tokens: u32,
  n_heads: u32,
  n_kv_heads: u32,
  window: u32,         // 0: none
  query_scale: f32,    // scores in powers of two: scale log2(e), or with a cap scale / soft_cap
  capped_scale: f32,   // soft_cap log2(e)
  n_keys: u32,         // dense
  position_offset: i32,  // dense
  n_chunks: u32,       // that a query may need
  // In groups of WIDTH values. Dense keys have page stride 0.
  y_first: u32,
  y_token_stride: u32,
  y_head_stride: u32,
  q_first: u32,
  q_token_stride: u32,
  q_head_stride: u32,
  k_first: u32,
  k_page_stride: u32,
  k_head_stride: u32,
  k_token_stride: u32,
  v_first: u32,
  v_page_stride: u32,
  v_head_stride: u32,
  v_token_stride: u32,
  positions_first: u32,
  sequences_first: u32,
  live_first: u32,
  tables_first: u32,
  tables_stride: u32,
}
#if PAGED
@group(0) @binding(${BATCH}) var<storage, read> positions: array<u32>;
@group(0) @binding(${BATCH + 1}) var<storage, read> sequences: array<i32>;
#if LIVE
@group(0) @binding(${BATCH + 2}) var<storage, read> live: array<u32>;
#endif
#endif
@group(0) @binding(${UNIFORM}) var<uniform> params: Params;

fn live_tokens() -> u32 {
#if LIVE
  return min(params.n_tokens, live[params.live_first]);
#else
  return params.n_tokens;
#endif
}

// -1: the token is padding, or not to be taken.
fn sequence_of(token: u32) -> i32 {
#if PAGED
  let sequence = sequences[params.sequences_first + token];
#if TAKE != 'all'
  let before = params.sequences_first + max(token, 1u) - 1u;
  let behind = params.sequences_first + min(token + 1u, params.n_tokens - 1u);
  let in_run = (token > 0u && sequences[before] == sequence) ||
               (token + 1u < live_tokens() && sequences[behind] == sequence);
#if TAKE == 'lone'
  let taken = !in_run;
#else
  let taken = in_run;
#endif
  if (!taken) {
    return -1;
  }
#endif
  return sequence;
#else
  return 0;
#endif
}

// The first key and the one behind the last.
fn visible_keys(token: u32) -> vec2<u32> {
#if PAGED
  let end = positions[params.positions_first + token] + 1u;
  let begin = select(0u, end - min(end, params.window), params.window > 0u);
#else
  let position = i32(token) + params.position_offset;
#if CAUSAL
  let end = min(u32(max(position + 1, 0)), params.n_keys);
#else
  let end = params.n_keys;
#endif
  let begin = select(0u, u32(max(position + 1 - i32(params.window), 0)), params.window > 0u);
#endif
  return vec2<u32>(min(begin, end), end);
}
