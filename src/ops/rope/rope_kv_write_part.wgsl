// Rotates q in place, or rotates k (or takes v as it is) and stores it in the pages of the KV pool. One
// thread makes one pair of values: of q the two that are rotated together, of a page two neighbours.
//   PART    'q' 'k' 'v'
//   HALF_SPLIT   1: pair i is (i, i + n_pairs); 0: (2 i, 2 i + 1)
//   PAGES   'f32' 'f16_pairs' 'f16': f16 in whole words, or where neighbours of other heads may share a
//           word, bit by bit
//   LIVE    1: tokens from live[live_first] on are not touched
struct Params {
  n_tokens: u32,
  n_heads: u32,  // of q, or of k and v
  head_dim: u32,
  n_pairs: u32,  // that are rotated
  source_first: u32,
  source_token_stride: u32,
  source_head_stride: u32,
  rotation_first: u32,
  rotation_stride: u32,
  positions_first: u32,
  sequences_first: u32,
  tables_first: u32,
  tables_stride: u32,
  pages_first: u32,
  page_tokens: u32,
  live_first: u32,
}
#if PART == 'q'
@group(0) @binding(0) var<storage, read_write> source: array<f32>;
#else
@group(0) @binding(0) var<storage, read> source: array<f32>;
#endif
@group(0) @binding(1) var<storage, read> sequences: array<i32>;
#if PART != 'v'
@group(0) @binding(2) var<storage, read> rotation: array<f32>;
#endif
#if PART != 'q'
#if PAGES == 'f32'
@group(0) @binding(${2 + (PART == 'k')}) var<storage, read_write> pages: array<f32>;
#endif
#if PAGES == 'f16_pairs'
@group(0) @binding(${2 + (PART == 'k')}) var<storage, read_write> pages: array<u32>;
#endif
#if PAGES == 'f16'
@group(0) @binding(${2 + (PART == 'k')}) var<storage, read_write> pages: array<atomic<u32>>;
#endif
@group(0) @binding(${3 + (PART == 'k')}) var<storage, read> positions: array<u32>;
@group(0) @binding(${4 + (PART == 'k')}) var<storage, read> tables: array<u32>;
#endif
#if LIVE
@group(0) @binding(${(PART == 'q') * 3 + (PART == 'k') * 6 + (PART == 'v') * 5}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${(PART == 'q') * 3 + (PART == 'k') * 6 + (PART == 'v') * 5 + LIVE}) var<uniform> params: Params;

#if PART == 'k'
// Value e of the head that starts at `head`, rotated.
fn rotated(head: u32, token: u32, e: u32) -> f32 {
  if (e >= 2u * params.n_pairs) {
    return source[head + e];
  }
#if HALF_SPLIT
  let pair = e % params.n_pairs;
  let is_second = e >= params.n_pairs;
  let a = source[head + pair];
  let b = source[head + pair + params.n_pairs];
#else
  let pair = e / 2u;
  let is_second = (e & 1u) == 1u;
  let a = source[head + 2u * pair];
  let b = source[head + 2u * pair + 1u];
#endif
  let at = params.rotation_first + token * params.rotation_stride + 2u * pair;
  let cosine = rotation[at];
  let sine = rotation[at + 1u];
  return select(a * cosine - b * sine, a * sine + b * cosine, is_second);
}
#endif
#if PART != 'q' && PAGES != 'f32'
// f32 to the bits of the nearest f16, ties to even.
fn to_f16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size >= 0x47800000u) {  // 2^16 and more
    return sign | select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  }
  if (size >= 0x38800000u) {  // a rounded mantissa may carry into the exponent
    let rebased = size - 0x38000000u;
    return sign | ((rebased + 0xfffu + ((rebased >> 13u) & 1u)) >> 13u);
  }
  let shift = 126u - (size >> 23u);  // subnormals are multiples of 2^-24
  if (shift > 24u) {
    return sign;
  }
  let mantissa = (size & 0x7fffffu) | 0x800000u;
  return sign | ((mantissa + (1u << (shift - 1u)) - 1u + ((mantissa >> shift) & 1u)) >> shift);
}
#endif
#if PART != 'q' && PAGES == 'f16'
fn store_half(e: u32, value: f32) {
  let shift = 16u * (e & 1u);
  atomicAnd(&pages[e / 2u], 0xffff0000u >> shift);
  atomicOr(&pages[e / 2u], to_f16(value) << shift);
}
#endif

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_tokens = min(params.n_tokens, live[params.live_first]);
#else
  let n_tokens = params.n_tokens;
#endif
#if PART == 'q'
  let head_pairs = params.n_pairs;
#else
  let head_pairs = (params.head_dim + 1u) / 2u;
#endif
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let pair = i % head_pairs;
  let head = i / head_pairs % params.n_heads;
  let token = i / head_pairs / params.n_heads;
  if (token >= n_tokens) {
    return;
  }
  let sequence = sequences[params.sequences_first + token];
  if (sequence < 0) {
    return;
  }
  let start =
      params.source_first + token * params.source_token_stride + head * params.source_head_stride;
#if PART == 'q'
#if HALF_SPLIT
  let first = start + pair;
  let second = first + params.n_pairs;
#else
  let first = start + 2u * pair;
  let second = first + 1u;
#endif
  let at = params.rotation_first + token * params.rotation_stride + 2u * pair;
  let cosine = rotation[at];
  let sine = rotation[at + 1u];
  let a = source[first];
  let b = source[second];
  source[first] = a * cosine - b * sine;
  source[second] = a * sine + b * cosine;
#else
  let position = positions[params.positions_first + token];
  let page = tables[params.tables_first + u32(sequence) * params.tables_stride +
                    position / params.page_tokens];
  let row = (page * params.n_heads + head) * params.page_tokens + position % params.page_tokens;
  let e = params.pages_first + row * params.head_dim + 2u * pair;
  let has_second = 2u * pair + 1u < params.head_dim;
  let last = select(0u, 1u, has_second);
#if PART == 'k'
  let a = rotated(start, token, 2u * pair);
  let b = rotated(start, token, 2u * pair + last);
#else
  let a = source[start + 2u * pair];
  let b = source[start + 2u * pair + last];
#endif
#if PAGES == 'f32'
  pages[e] = a;
  if (has_second) {
    pages[e + 1u] = b;
  }
#endif
#if PAGES == 'f16_pairs'
  pages[e / 2u] = to_f16(a) | (to_f16(b) << 16u);
#endif
#if PAGES == 'f16'
  store_half(e, a);
  if (has_second) {
    store_half(e + 1u, b);
  }
#endif
#endif
}
