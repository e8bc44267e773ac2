// To be included: queries, keys and values of attention, four values at a time; zeros behind the end of a head.
//   HEAD_DIM
//   WIDTH        4: all addresses count groups of four values; else 1
//   KV           'f32' 'f16'
//   PAGED        1: keys lie in pages of PAGE_TOKENS positions, TABLES being the binding of the block
//                tables; 0: dense
//   CAP          1: scores are capped
#if WIDTH == 4
alias QueryUnit = vec4<f32>;
#else
alias QueryUnit = f32;
#endif
#if KV == 'f32'
alias KeyUnit = QueryUnit;
#else
#if WIDTH == 4
alias KeyUnit = vec2<u32>;
#else
alias KeyUnit = u32;  // two values
#endif
#endif
@group(0) @binding(1) var<storage, read> q: array<QueryUnit>;
@group(0) @binding(2) var<storage, read> k: array<KeyUnit>;
@group(0) @binding(3) var<storage, read> v: array<KeyUnit>;
#if PAGED
@group(0) @binding(${TABLES}) var<storage, read> tables: array<u32>;
#endif

// Stands for minus infinity: no score gets there, and differences with it stay finite.
const kNoScore = -1.0e30;

// Where the head of a key (x) and of its value (y) begin.
fn key_rows_at(sequence: u32, position: u32, kv_head: u32) -> vec2<u32> {
#if PAGED
  let page = tables[params.tables_first + sequence * params.tables_stride + position / ${PAGE_TOKENS}u];
  let slot = position % ${PAGE_TOKENS}u;
#else
  let page = 0u;
  let slot = position;
#endif
  return vec2<u32>(params.k_first + page * params.k_page_stride + kv_head * params.k_head_stride +
                       slot * params.k_token_stride,
                   params.v_first + page * params.v_page_stride + kv_head * params.v_head_stride +
                       slot * params.v_token_stride);
}

// Scaled so that score_of gives powers of two.
fn query_four(token: u32, head: u32, c: u32) -> vec4<f32> {
  let row = params.q_first + token * params.q_token_stride + head * params.q_head_stride;
#if WIDTH == 4
  return params.query_scale * q[row + c];
#else
  let last = ${HEAD_DIM - 1}u;
  let dims = vec4<u32>(4u * c) + vec4<u32>(0u, 1u, 2u, 3u);
  let at = vec4<u32>(row) + min(dims, vec4<u32>(last));
  return select(vec4<f32>(0.0), params.query_scale * vec4<f32>(q[at.x], q[at.y], q[at.z], q[at.w]),
                dims <= vec4<u32>(last));
#endif
}

fn key_four(row: u32, c: u32) -> vec4<f32> {
#if WIDTH == 4
#if KV == 'f32'
  return k[row + c];
#else
  let pair = k[row + c];
  return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
#endif
#else
  let last = ${HEAD_DIM - 1}u;
  let dims = vec4<u32>(4u * c) + vec4<u32>(0u, 1u, 2u, 3u);
  let at = vec4<u32>(row) + min(dims, vec4<u32>(last));
#if KV == 'f32'
  let four = vec4<f32>(k[at.x], k[at.y], k[at.z], k[at.w]);
#else
  let shift = 16u * (at & vec4<u32>(1u));
  let four = vec4<f32>(
      unpack2x16float(k[at.x / 2u] >> shift.x).x, unpack2x16float(k[at.y / 2u] >> shift.y).x,
      unpack2x16float(k[at.z / 2u] >> shift.z).x, unpack2x16float(k[at.w / 2u] >> shift.w).x);
#endif
  return select(vec4<f32>(0.0), four, dims <= vec4<u32>(last));
#endif
}

fn value_four(row: u32, c: u32) -> vec4<f32> {
#if WIDTH == 4
#if KV == 'f32'
  return v[row + c];
#else
  let pair = v[row + c];
  return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
#endif
#else
  let last = ${HEAD_DIM - 1}u;
  let dims = vec4<u32>(4u * c) + vec4<u32>(0u, 1u, 2u, 3u);
  let at = vec4<u32>(row) + min(dims, vec4<u32>(last));
#if KV == 'f32'
  let four = vec4<f32>(v[at.x], v[at.y], v[at.z], v[at.w]);
#else
  let shift = 16u * (at & vec4<u32>(1u));
  let four = vec4<f32>(
      unpack2x16float(v[at.x / 2u] >> shift.x).x, unpack2x16float(v[at.y / 2u] >> shift.y).x,
      unpack2x16float(v[at.z / 2u] >> shift.z).x, unpack2x16float(v[at.w / 2u] >> shift.w).x);
#endif
  return select(vec4<f32>(0.0), four, dims <= vec4<u32>(last));
#endif
}

// From the product of a scaled query and a key to a power of two.
fn score_of(product: vec4<f32>) -> vec4<f32> {
#if CAP
  // tanh of large arguments is NaN on some drivers; beyond 15 it is 1 in f32.
  return params.capped_scale * tanh(clamp(product, vec4<f32>(-15.0), vec4<f32>(15.0)));
#else
  return product;
#endif
}
