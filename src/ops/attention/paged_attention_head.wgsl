// Causal attention over the pages of the KV pool. A workgroup makes one head of one token: 64 keys at a
// time, a thread scores one of them, then all threads add up the values, each up to four places of the
// head. Scores are weighted against the largest so far, and sums rescaled when it grows.
//   PAGES   'f32' 'f16'
//   CAP     1: scores are soft_cap tanh(score / soft_cap)
//   LIVE    1: tokens from live[live_first] on are not touched
struct Params {
  n_tokens: u32,
  n_heads: u32,
  n_kv_heads: u32,
  head_dim: u32,  // at most 256
  page_tokens: u32,
  window: u32,  // 0: none
  scale: f32,
  soft_cap: f32,
  y_first: u32,
  y_token_stride: u32,
  y_head_stride: u32,
  q_first: u32,
  q_token_stride: u32,
  q_head_stride: u32,
  k_first: u32,
  v_first: u32,
  positions_first: u32,
  sequences_first: u32,
  tables_first: u32,
  tables_stride: u32,
  live_first: u32,
}
#if PAGES == 'f32'
alias Stored = f32;
#else
alias Stored = u32;  // two values
#endif
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k_pages: array<Stored>;
@group(0) @binding(3) var<storage, read> v_pages: array<Stored>;
@group(0) @binding(4) var<storage, read> positions: array<u32>;
@group(0) @binding(5) var<storage, read> sequences: array<i32>;
@group(0) @binding(6) var<storage, read> tables: array<u32>;
#if LIVE
@group(0) @binding(7) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${7 + LIVE}) var<uniform> params: Params;

var<workgroup> query: array<f32, 256>;
var<workgroup> scores: array<f32, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> rows: array<u32, 64>;  // where the keys and values of a block start in the pages

fn key_value(e: u32) -> f32 {
#if PAGES == 'f32'
  return k_pages[params.k_first + e];
#else
  let at = params.k_first + e;
  return unpack2x16float(k_pages[at / 2u] >> (16u * (at & 1u))).x;
#endif
}
fn value_value(e: u32) -> f32 {
#if PAGES == 'f32'
  return v_pages[params.v_first + e];
#else
  let at = params.v_first + e;
  return unpack2x16float(v_pages[at / 2u] >> (16u * (at & 1u))).x;
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_tokens = min(params.n_tokens, live[params.live_first]);
#else
  let n_tokens = params.n_tokens;
#endif
  let i = group.y * n_groups.x + group.x;
  let token = i / params.n_heads;
  let head = i % params.n_heads;
  if (token >= n_tokens) {  // the whole workgroup
    return;
  }
  let sequence = sequences[params.sequences_first + token];
  if (sequence < 0) {  // the whole workgroup
    return;
  }
  let end = positions[params.positions_first + token] + 1u;
  let begin = select(0u, end - min(end, params.window), params.window > 0u);
  let kv_head = head / (params.n_heads / params.n_kv_heads);
  let table = params.tables_first + u32(sequence) * params.tables_stride;
  let q_head = params.q_first + token * params.q_token_stride + head * params.q_head_stride;
  for (var e = thread; e < params.head_dim; e += 64u) {
    query[e] = q[q_head + e];
  }
  workgroupBarrier();

  var largest = -3.0e38;
  var weight_sum = 0.0;
  var sums = vec4<f32>(0.0);  // of places thread, thread + 64, ...
  for (var block = begin; block < end; block += 64u) {
    let n_keys = min(64u, end - block);
    if (thread < n_keys) {
      let position = block + thread;
      let page = tables[table + position / params.page_tokens];
      let row = ((page * params.n_kv_heads + kv_head) * params.page_tokens +
                 position % params.page_tokens) * params.head_dim;
      var dot = 0.0;
      for (var e = 0u; e < params.head_dim; e++) {
        dot += query[e] * key_value(row + e);
      }
      var score = params.scale * dot;
#if CAP
      // tanh of large arguments is NaN on some drivers; beyond 15 it is 1 in f32.
      score = params.soft_cap * tanh(clamp(score / params.soft_cap, -15.0, 15.0));
#endif
      rows[thread] = row;
      scores[thread] = score;
    }
    workgroupBarrier();
    var new_largest = largest;
    for (var j = 0u; j < n_keys; j++) {
      new_largest = max(new_largest, scores[j]);
    }
    if (thread < n_keys) {
      weights[thread] = exp(max(scores[thread] - new_largest, -80.0));
    }
    workgroupBarrier();
    // Nothing has been summed before the first block, so any finite factor is right there.
    let rescale = exp(max(largest - new_largest, -80.0));
    largest = new_largest;
    weight_sum *= rescale;
    sums *= rescale;
    for (var j = 0u; j < n_keys; j++) {
      let weight = weights[j];
      weight_sum += weight;
#for c in 0..4
      if (thread + ${64 * c}u < params.head_dim) {
        sums[${c}] += weight * value_value(rows[j] + thread + ${64 * c}u);
      }
#endfor
    }
    workgroupBarrier();
  }
  let y_head = params.y_first + token * params.y_token_stride + head * params.y_head_stride;
#for c in 0..4
  if (thread + ${64 * c}u < params.head_dim) {
    y[y_head + thread + ${64 * c}u] = sums[${c}] / weight_sum;
  }
#endfor
}
