// Rotates q in place, rotates k and stores it, and v as it is, in the pages of the KV pool: all three, or
// those that a device binds at once. One thread makes one pair of values: of q the two that are rotated
// together, of a page two neighbours.
//   Q K V   1: this dispatch does that part
//   STATE   1: rotation, positions, sequences, block tables and live lie in one buffer and are one
//           binding; 0: one each
//   HALF_SPLIT   1: pair i is (i, i + n_pairs); 0: (2 i, 2 i + 1)
//   K_PAGES V_PAGES   'f32' 'f16_pairs' 'f16': f16 in whole words, or where neighbours of other heads may
//           share a word, bit by bit
//   LIVE    1: tokens from live[live_first] on are not touched
struct Params {
  n_tokens: u32,
  head_dim: u32,
  n_pairs: u32,  // that are rotated
  n_heads: u32,
  n_kv_heads: u32,
  q_first: u32,
  q_token_stride: u32,
  q_head_stride: u32,
  k_first: u32,
  k_token_stride: u32,
  k_head_stride: u32,
  v_first: u32,
  v_token_stride: u32,
  v_head_stride: u32,
  k_pages_first: u32,
  v_pages_first: u32,
  page_tokens: u32,
  rotation_first: u32,
  rotation_stride: u32,
  positions_first: u32,
  sequences_first: u32,
  tables_first: u32,
  tables_stride: u32,
  live_first: u32,
}
#if Q
@group(0) @binding(0) var<storage, read_write> q: array<f32>;
#endif
#if K
@group(0) @binding(${Q}) var<storage, read> k: array<f32>;
#if K_PAGES == 'f32'
@group(0) @binding(${Q + 1}) var<storage, read_write> k_pages: array<f32>;
#endif
#if K_PAGES == 'f16_pairs'
@group(0) @binding(${Q + 1}) var<storage, read_write> k_pages: array<u32>;
#endif
#if K_PAGES == 'f16'
@group(0) @binding(${Q + 1}) var<storage, read_write> k_pages: array<atomic<u32>>;
#endif
#endif
#if V
@group(0) @binding(${Q + 2 * K}) var<storage, read> v: array<f32>;
#if V_PAGES == 'f32'
@group(0) @binding(${Q + 2 * K + 1}) var<storage, read_write> v_pages: array<f32>;
#endif
#if V_PAGES == 'f16_pairs'
@group(0) @binding(${Q + 2 * K + 1}) var<storage, read_write> v_pages: array<u32>;
#endif
#if V_PAGES == 'f16'
@group(0) @binding(${Q + 2 * K + 1}) var<storage, read_write> v_pages: array<atomic<u32>>;
#endif
#endif
#if STATE
@group(0) @binding(${Q + 2 * K + 2 * V}) var<storage, read> state: array<u32>;
@group(0) @binding(${Q + 2 * K + 2 * V + 1}) var<uniform> params: Params;
#else
@group(0) @binding(${Q + 2 * K + 2 * V}) var<storage, read> rotation: array<f32>;
@group(0) @binding(${Q + 2 * K + 2 * V + 1}) var<storage, read> positions: array<u32>;
@group(0) @binding(${Q + 2 * K + 2 * V + 2}) var<storage, read> sequences: array<i32>;
@group(0) @binding(${Q + 2 * K + 2 * V + 3}) var<storage, read> tables: array<u32>;
#if LIVE
@group(0) @binding(${Q + 2 * K + 2 * V + 4}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${Q + 2 * K + 2 * V + 4 + LIVE}) var<uniform> params: Params;
#endif

fn n_live_tokens() -> u32 {
#if LIVE
#if STATE
  return min(params.n_tokens, state[params.live_first]);
#else
  return min(params.n_tokens, live[params.live_first]);
#endif
#else
  return params.n_tokens;
#endif
}
fn sequence_of(token: u32) -> i32 {
#if STATE
  return bitcast<i32>(state[params.sequences_first + token]);
#else
  return sequences[params.sequences_first + token];
#endif
}
fn position_of(token: u32) -> u32 {
#if STATE
  return state[params.positions_first + token];
#else
  return positions[params.positions_first + token];
#endif
}
fn page_of(sequence: i32, position: u32) -> u32 {
  let at = params.tables_first + u32(sequence) * params.tables_stride +
           position / params.page_tokens;
#if STATE
  return state[at];
#else
  return tables[at];
#endif
}
// (cosine, sine) of a pair.
fn turn_of(token: u32, pair: u32) -> vec2<f32> {
  let at = params.rotation_first + token * params.rotation_stride + 2u * pair;
#if STATE
  return vec2<f32>(bitcast<f32>(state[at]), bitcast<f32>(state[at + 1u]));
#else
  return vec2<f32>(rotation[at], rotation[at + 1u]);
#endif
}

#if Q
fn rotate_q(token: u32, head: u32, pair: u32) {
  let start = params.q_first + token * params.q_token_stride + head * params.q_head_stride;
#if HALF_SPLIT
  let first = start + pair;
  let second = first + params.n_pairs;
#else
  let first = start + 2u * pair;
  let second = first + 1u;
#endif
  let turn = turn_of(token, pair);
  let a = q[first];
  let b = q[second];
  q[first] = a * turn.x - b * turn.y;
  q[second] = a * turn.y + b * turn.x;
}
#endif
#if K
// Value e of the head that starts at `head`, rotated.
fn rotated_k(head: u32, token: u32, e: u32) -> f32 {
  if (e >= 2u * params.n_pairs) {
    return k[head + e];
  }
#if HALF_SPLIT
  let pair = e % params.n_pairs;
  let is_second = e >= params.n_pairs;
  let a = k[head + pair];
  let b = k[head + pair + params.n_pairs];
#else
  let pair = e / 2u;
  let is_second = (e & 1u) == 1u;
  let a = k[head + 2u * pair];
  let b = k[head + 2u * pair + 1u];
#endif
  let turn = turn_of(token, pair);
  return select(a * turn.x - b * turn.y, a * turn.y + b * turn.x, is_second);
}
#endif
#if K && K_PAGES != 'f32' || V && V_PAGES != 'f32'
#include 'ops/quantize/to_half.wgsl'
#endif
// Stores of two neighbours from value e on, which is even in whole words; the second may not be there.
#if K
fn store_k(e: u32, a: f32, b: f32, has_second: bool) {
#if K_PAGES == 'f32'
  k_pages[e] = a;
  if (has_second) {
    k_pages[e + 1u] = b;
  }
#endif
#if K_PAGES == 'f16_pairs'
  k_pages[e / 2u] = to_f16(a) | (to_f16(b) << 16u);
#endif
#if K_PAGES == 'f16'
  atomicAnd(&k_pages[e / 2u], 0xffff0000u >> (16u * (e & 1u)));
  atomicOr(&k_pages[e / 2u], to_f16(a) << (16u * (e & 1u)));
  if (has_second) {
    let second = e + 1u;
    atomicAnd(&k_pages[second / 2u], 0xffff0000u >> (16u * (second & 1u)));
    atomicOr(&k_pages[second / 2u], to_f16(b) << (16u * (second & 1u)));
  }
#endif
}
#endif
#if V
fn store_v(e: u32, a: f32, b: f32, has_second: bool) {
#if V_PAGES == 'f32'
  v_pages[e] = a;
  if (has_second) {
    v_pages[e + 1u] = b;
  }
#endif
#if V_PAGES == 'f16_pairs'
  v_pages[e / 2u] = to_f16(a) | (to_f16(b) << 16u);
#endif
#if V_PAGES == 'f16'
  atomicAnd(&v_pages[e / 2u], 0xffff0000u >> (16u * (e & 1u)));
  atomicOr(&v_pages[e / 2u], to_f16(a) << (16u * (e & 1u)));
  if (has_second) {
    let second = e + 1u;
    atomicAnd(&v_pages[second / 2u], 0xffff0000u >> (16u * (second & 1u)));
    atomicOr(&v_pages[second / 2u], to_f16(b) << (16u * (second & 1u)));
  }
#endif
}
#endif

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let q_pairs = ${Q}u * params.n_heads * params.n_pairs;
  let head_pairs = (params.head_dim + 1u) / 2u;
  let kv_pairs = params.n_kv_heads * head_pairs;
  let token_pairs = q_pairs + ${K + V}u * kv_pairs;
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let token = i / token_pairs;
  if (token >= n_live_tokens()) {
    return;
  }
  let sequence = sequence_of(token);
  if (sequence < 0) {
    return;
  }
  let unit = i % token_pairs;
#if Q
  if (unit < q_pairs) {
    rotate_q(token, unit / params.n_pairs, unit % params.n_pairs);
    return;
  }
#endif
#if K || V
  let kv_unit = (unit - q_pairs) % kv_pairs;
  let head = kv_unit / head_pairs;
  let pair = kv_unit % head_pairs;
  let position = position_of(token);
  let row = (page_of(sequence, position) * params.n_kv_heads + head) * params.page_tokens +
            position % params.page_tokens;
  let at = row * params.head_dim + 2u * pair;
  let has_second = 2u * pair + 1u < params.head_dim;
  let last = select(0u, 1u, has_second);
#endif
#if K
#if V
  let is_k = unit - q_pairs < kv_pairs;
#else
  let is_k = true;
#endif
  if (is_k) {
    let start = params.k_first + token * params.k_token_stride + head * params.k_head_stride;
    store_k(params.k_pages_first + at, rotated_k(start, token, 2u * pair),
            rotated_k(start, token, 2u * pair + last), has_second);
    return;
  }
#endif
#if V
  let start = params.v_first + token * params.v_token_stride + head * params.v_head_stride;
  store_v(params.v_pages_first + at, v[start + 2u * pair], v[start + 2u * pair + last], has_second);
#endif
}
