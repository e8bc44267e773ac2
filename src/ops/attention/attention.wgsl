// Causal attention with grouped key and value heads. For query t of head h, kv = h / (Hq / Hkv):
//   score[j] = dot(Q[t, h], K[j, kv]) / sqrt(d)      for j <= position_offset + t, j < S
//   output[t, h] = sum_j softmax(score)[j] V[j, kv]
//
// Bindings: Q f32[T, Hq d] r, K f32[S, Hkv d] r, V f32[S, Hkv d] r, output f32[T, Hq d] rw,
//           params { T, S, num_q_heads = Hq, num_kv_heads = Hkv, head_dim = d, position_offset }
//           (24 bytes). d is at most 256 and Hq a multiple of Hkv.
// Grid: (T, Hq). Where T exceeds 65,535: (x, Hq, z) with x z >= T.
//
// Fewer than 32 queries (decoding): a workgroup takes the one query of its place in the grid. More
// (prefill): the first ceil(T / 32) groups of a head take 32 queries each, so that keys and values
// are read once for 32, and the groups left over do nothing. Both walk over the keys once, in
// tiles, with running maximum and sum. Workgroup memory: 14,848 bytes.

struct Params {
  T: u32,
  S: u32,
  num_q_heads: u32,
  num_kv_heads: u32,
  head_dim: u32,
  position_offset: u32,
}

@group(0) @binding(0) var<storage, read> Q: array<f32>;
@group(0) @binding(1) var<storage, read> K: array<f32>;
@group(0) @binding(2) var<storage, read> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

// Stands for minus infinity: no score gets there, and differences with it stay finite.
const kNoScore = -1.0e30;

var<workgroup> tile: array<vec4<f32>, 640>;  // operands; 10,240 bytes
var<workgroup> weights: array<f32, 1056>;    // 32 rows of 32, padded to 33; 4,224 bytes
var<workgroup> row_stats: array<f32, 96>;    // per query: maximum, sum, factor; 384 bytes

// Where a head's vector of one token begins.
fn query_row(t: u32, head: u32) -> u32 {
  return (t * params.num_q_heads + head) * params.head_dim;
}

fn key_row(j: u32, head: u32) -> u32 {
  let kv_head = head / (params.num_q_heads / params.num_kv_heads);
  return (j * params.num_kv_heads + kv_head) * params.head_dim;
}

// One query. A team of 8 lanes takes every 32nd key; lane l holds the dimensions l, l + 8, l + 16,
// ... (four to a vec4, 32 to a chunk), so that a load of a team is a run of 32 bytes. A team looks
// at four keys at a time, and its lanes exchange their parts of the four scores through memory that
// alternates: one barrier for 128 keys of the workgroup.

// Four dimensions of a lane. Beyond the head the last one is read again: there the query is zero,
// and outputs are not written.
fn lane_dims(chunk: u32, lane: u32) -> vec4<u32> {
  let first = 32u * chunk + lane;
  let last = params.head_dim - 1u;
  return min(vec4<u32>(first, first + 8u, first + 16u, first + 24u), vec4<u32>(last));
}

fn load_key(row: u32, dims: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(K[row + dims.x], K[row + dims.y], K[row + dims.z], K[row + dims.w]);
}

fn load_value(row: u32, dims: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(V[row + dims.x], V[row + dims.y], V[row + dims.z], V[row + dims.w]);
}

// The weighted values of four keys, added to what a lane has for one chunk.
fn add_values(sum: vec4<f32>, factor: f32, p: vec4<f32>, rows: vec4<u32>, chunk: u32,
              lane: u32) -> vec4<f32> {
  let dims = lane_dims(chunk, lane);
  let v0 = load_value(rows.x, dims);
  let v1 = load_value(rows.y, dims);
  let v2 = load_value(rows.z, dims);
  let v3 = load_value(rows.w, dims);
  return fma(v3, vec4<f32>(p.w), fma(v2, vec4<f32>(p.z), fma(v1, vec4<f32>(p.y),
             fma(v0, vec4<f32>(p.x), sum * factor))));
}

// Sums one chunk over the 32 teams and writes its 32 dimensions.
fn write_chunk(sum: vec4<f32>, chunk: u32, total: f32, out_row: u32, thread: u32) {
  tile[thread] = sum;
  workgroupBarrier();
  if (thread < 64u) {
    tile[thread] = (tile[thread] + tile[thread + 64u]) +
                   (tile[thread + 128u] + tile[thread + 192u]);
  }
  workgroupBarrier();
  if (thread < 8u) {
    let y = (((tile[thread] + tile[thread + 8u]) + (tile[thread + 16u] + tile[thread + 24u])) +
             ((tile[thread + 32u] + tile[thread + 40u]) +
              (tile[thread + 48u] + tile[thread + 56u]))) / total;
    for (var n = 0u; n < 4u; n++) {
      let dim = 32u * chunk + 8u * n + thread;
      if (dim < params.head_dim) {
        output[out_row + dim] = y[n];
      }
    }
  }
  workgroupBarrier();
}

fn attend_one(t: u32, head: u32, thread: u32) {
  let d = params.head_dim;
  let n_chunks = (d + 31u) / 32u;
  let n_keys = min(params.S, params.position_offset + t + 1u);
  let team = thread / 8u;
  let lane = thread % 8u;
  let out_row = query_row(t, head);

  // The query, scaled, as the lanes need it: vec4 8 c + l of chunk c, lane l.
  if (thread < 64u) {
    var x = vec4<f32>(0.0);
    let scale = 1.0 / sqrt(f32(d));
    for (var n = 0u; n < 4u; n++) {
      let dim = 32u * team + 8u * n + lane;
      if (dim < d) {
        x[n] = Q[out_row + dim] * scale;
      }
    }
    tile[512u + thread] = x;
  }
  workgroupBarrier();

  var largest = kNoScore;
  var total = 0.0;
  var o0 = vec4<f32>(0.0);
  var o1 = vec4<f32>(0.0);
  var o2 = vec4<f32>(0.0);
  var o3 = vec4<f32>(0.0);
  var o4 = vec4<f32>(0.0);
  var o5 = vec4<f32>(0.0);
  var o6 = vec4<f32>(0.0);
  var o7 = vec4<f32>(0.0);
  let n_passes = (n_keys + 127u) / 128u;
  for (var pass_index = 0u; pass_index < n_passes; pass_index++) {
    let first = pass_index * 128u + team;
    let keys = vec4<u32>(first, first + 32u, first + 64u, first + 96u);
    let visible = keys < vec4<u32>(n_keys);
    let safe_keys = min(keys, vec4<u32>(n_keys - 1u));
    let rows = vec4<u32>(key_row(safe_keys.x, head), key_row(safe_keys.y, head),
                         key_row(safe_keys.z, head), key_row(safe_keys.w, head));
    var s0 = vec4<f32>(0.0);
    var s1 = vec4<f32>(0.0);
    var s2 = vec4<f32>(0.0);
    var s3 = vec4<f32>(0.0);
    for (var chunk = 0u; chunk < n_chunks; chunk++) {
      let dims = lane_dims(chunk, lane);
      let x = tile[512u + 8u * chunk + lane];
      s0 = fma(x, load_key(rows.x, dims), s0);
      s1 = fma(x, load_key(rows.y, dims), s1);
      s2 = fma(x, load_key(rows.z, dims), s2);
      s3 = fma(x, load_key(rows.w, dims), s3);
    }
    let part = (pass_index & 1u) * 256u;
    let one = vec4<f32>(1.0);
    tile[part + thread] = vec4<f32>(dot(s0, one), dot(s1, one), dot(s2, one), dot(s3, one));
    workgroupBarrier();
    let of_team = part + 8u * team;
    let score = ((tile[of_team] + tile[of_team + 1u]) + (tile[of_team + 2u] + tile[of_team + 3u])) +
                ((tile[of_team + 4u] + tile[of_team + 5u]) +
                 (tile[of_team + 6u] + tile[of_team + 7u]));
    let masked = select(vec4<f32>(kNoScore), score, visible);
    let new_largest = max(largest, max(max(masked.x, masked.y), max(masked.z, masked.w)));
    let factor = exp(largest - new_largest);
    let p = select(vec4<f32>(0.0), exp(masked - new_largest), visible);
    largest = new_largest;
    total = fma(total, factor, (p.x + p.y) + (p.z + p.w));
    o0 = add_values(o0, factor, p, rows, 0u, lane);
    if (n_chunks > 1u) {
      o1 = add_values(o1, factor, p, rows, 1u, lane);
    }
    if (n_chunks > 2u) {
      o2 = add_values(o2, factor, p, rows, 2u, lane);
    }
    if (n_chunks > 3u) {
      o3 = add_values(o3, factor, p, rows, 3u, lane);
    }
    if (n_chunks > 4u) {
      o4 = add_values(o4, factor, p, rows, 4u, lane);
    }
    if (n_chunks > 5u) {
      o5 = add_values(o5, factor, p, rows, 5u, lane);
    }
    if (n_chunks > 6u) {
      o6 = add_values(o6, factor, p, rows, 6u, lane);
    }
    if (n_chunks > 7u) {
      o7 = add_values(o7, factor, p, rows, 7u, lane);
    }
  }

  // Merge the teams: each scales its sums to the common maximum.
  if (lane == 0u) {
    weights[team] = largest;
    weights[32u + team] = total;
  }
  workgroupBarrier();
  var largest_of_all = kNoScore;
  for (var other = 0u; other < 32u; other++) {
    largest_of_all = max(largest_of_all, weights[other]);
  }
  var all = 0.0;
  for (var other = 0u; other < 32u; other++) {
    all += weights[32u + other] * exp(weights[other] - largest_of_all);
  }
  let to_common = exp(largest - largest_of_all);
  let divisor = select(1.0, all, all > 0.0);  // no key, no value: zeros
  for (var chunk = 0u; chunk < n_chunks; chunk++) {
    var sum = select(o0, o1, chunk == 1u);
    sum = select(sum, o2, chunk == 2u);
    sum = select(sum, o3, chunk == 3u);
    sum = select(sum, o4, chunk == 4u);
    sum = select(sum, o5, chunk == 5u);
    sum = select(sum, o6, chunk == 6u);
    sum = select(sum, o7, chunk == 7u);
    write_chunk(sum * to_common, chunk, divisor, out_row, thread);
  }
}

// 32 queries. Tiles of 32 keys; scores in chunks of 32 dimensions, a 2x2 block of the 32x32 scores
// a thread; then values in chunks of 64 dimensions, two rows by four columns a thread. Operands are
// read as vec4 along the dimensions; rows of the score operands are 9 vec4 apart, which keeps eight
// neighbouring rows in different banks.

fn load_query4(t: u32, head: u32, dim: u32) -> vec4<f32> {
  let row = query_row(min(t, params.T - 1u), head);
  let last = params.head_dim - 1u;
  let inside = vec4<u32>(dim, dim + 1u, dim + 2u, dim + 3u) <= vec4<u32>(last);
  return select(vec4<f32>(0.0),
                vec4<f32>(Q[row + min(dim, last)], Q[row + min(dim + 1u, last)],
                          Q[row + min(dim + 2u, last)], Q[row + min(dim + 3u, last)]),
                inside);
}

// Beyond the head the last dimension is read again: there the query is zero, outputs not written.
fn dims4(dim: u32) -> vec4<u32> {
  return min(vec4<u32>(dim, dim + 1u, dim + 2u, dim + 3u), vec4<u32>(params.head_dim - 1u));
}

struct TwoRows {
  a: vec4<f32>,
  b: vec4<f32>,
}

// Scales two rows of output and adds 32 weighted values, columns 64 chunk + 4 column ... + 3.
fn add_value_tile(sum: TwoRows, chunk: u32, first_key: u32, head: u32, thread: u32) -> TwoRows {
  let column = thread % 16u;
  let row = thread / 16u;
  let dims = dims4(64u * chunk + 4u * column);
  let last_key = params.S - 1u;
  workgroupBarrier();  // the operands of the step before are done with
  tile[thread] = load_value(key_row(min(first_key + row, last_key), head), dims);
  tile[thread + 256u] = load_value(key_row(min(first_key + row + 16u, last_key), head), dims);
  workgroupBarrier();
  var a = sum.a * row_stats[64u + row];
  var b = sum.b * row_stats[80u + row];
  for (var j = 0u; j < 32u; j += 4u) {
    let at = 33u * row + j;
    let v0 = tile[16u * j + column];
    let v1 = tile[16u * j + 16u + column];
    let v2 = tile[16u * j + 32u + column];
    let v3 = tile[16u * j + 48u + column];
    a = fma(v0, vec4<f32>(weights[at]), a);
    b = fma(v0, vec4<f32>(weights[at + 528u]), b);
    a = fma(v1, vec4<f32>(weights[at + 1u]), a);
    b = fma(v1, vec4<f32>(weights[at + 529u]), b);
    a = fma(v2, vec4<f32>(weights[at + 2u]), a);
    b = fma(v2, vec4<f32>(weights[at + 530u]), b);
    a = fma(v3, vec4<f32>(weights[at + 3u]), a);
    b = fma(v3, vec4<f32>(weights[at + 531u]), b);
  }
  return TwoRows(a, b);
}

fn write_two_rows(sum: TwoRows, chunk: u32, first_query: u32, head: u32, thread: u32) {
  let row = thread / 16u;
  let dim = 64u * chunk + 4u * (thread % 16u);
  let a = sum.a / row_stats[32u + row];
  let b = sum.b / row_stats[48u + row];
  for (var n = 0u; n < 4u; n++) {
    if (dim + n < params.head_dim) {
      if (first_query + row < params.T) {
        output[query_row(first_query + row, head) + dim + n] = a[n];
      }
      if (first_query + row + 16u < params.T) {
        output[query_row(first_query + row + 16u, head) + dim + n] = b[n];
      }
    }
  }
}

fn attend_many(first_query: u32, head: u32, thread: u32) {
  let d = params.head_dim;
  let last_key = params.S - 1u;
  let n_keys = min(params.S, params.position_offset + min(first_query + 32u, params.T));
  let column = thread % 16u;
  let row = thread / 16u;
  let scale = 1.0 / sqrt(f32(d));
  if (thread < 32u) {
    row_stats[thread] = kNoScore;
    row_stats[32u + thread] = 0.0;
  }
  var o0 = TwoRows(vec4<f32>(0.0), vec4<f32>(0.0));
  var o1 = TwoRows(vec4<f32>(0.0), vec4<f32>(0.0));
  var o2 = TwoRows(vec4<f32>(0.0), vec4<f32>(0.0));
  var o3 = TwoRows(vec4<f32>(0.0), vec4<f32>(0.0));
  for (var first_key = 0u; first_key < n_keys; first_key += 32u) {
    // Scores of the rows (row, row + 16) and the keys (column, column + 16).
    var s00 = vec4<f32>(0.0);
    var s01 = vec4<f32>(0.0);
    var s10 = vec4<f32>(0.0);
    var s11 = vec4<f32>(0.0);
    for (var dim = 0u; dim < d; dim += 32u) {
      let load_row = thread / 8u;
      let load_dim = dim + 4u * (thread % 8u);
      workgroupBarrier();  // the operands of the step before are done with
      tile[9u * load_row + thread % 8u] = load_query4(first_query + load_row, head, load_dim);
      tile[288u + 9u * load_row + thread % 8u] =
          load_key(key_row(min(first_key + load_row, last_key), head), dims4(load_dim));
      workgroupBarrier();
      for (var n = 0u; n < 8u; n++) {
        let q0 = tile[9u * row + n];
        let q1 = tile[9u * row + 144u + n];
        let k0 = tile[288u + 9u * column + n];
        let k1 = tile[432u + 9u * column + n];
        s00 = fma(q0, k0, s00);
        s01 = fma(q0, k1, s01);
        s10 = fma(q1, k0, s10);
        s11 = fma(q1, k1, s11);
      }
    }
    let one = vec4<f32>(1.0);
    let scores = scale * vec4<f32>(dot(s00, one), dot(s01, one), dot(s10, one), dot(s11, one));
    let limit0 = min(params.S, params.position_offset + first_query + row + 1u);
    let limit1 = min(params.S, params.position_offset + first_query + row + 17u);
    let key = first_key + column;
    weights[33u * row + column] = select(kNoScore, scores.x, key < limit0);
    weights[33u * row + column + 16u] = select(kNoScore, scores.y, key + 16u < limit0);
    weights[33u * row + 528u + column] = select(kNoScore, scores.z, key < limit1);
    weights[33u * row + 528u + column + 16u] = select(kNoScore, scores.w, key + 16u < limit1);
    workgroupBarrier();

    // Maximum and sum of each query, eight threads to a row; `tile` holds the eight parts.
    let stat_row = thread / 8u;
    let at = 33u * stat_row + 4u * (thread % 8u);
    var x = vec4<f32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    tile[thread] = vec4<f32>(max(max(x.x, x.y), max(x.z, x.w)));
    workgroupBarrier();
    let before = row_stats[stat_row];
    var largest = before;
    for (var n = 0u; n < 8u; n++) {
      largest = max(largest, tile[8u * stat_row + n].x);
    }
    x = select(exp(x - largest), vec4<f32>(0.0), x == vec4<f32>(kNoScore));
    weights[at] = x.x;
    weights[at + 1u] = x.y;
    weights[at + 2u] = x.z;
    weights[at + 3u] = x.w;
    tile[256u + thread] = vec4<f32>((x.x + x.y) + (x.z + x.w));
    workgroupBarrier();
    if (thread % 8u == 0u) {
      var sum = 0.0;
      for (var n = 0u; n < 8u; n++) {
        sum += tile[256u + thread + n].x;
      }
      let factor = exp(before - largest);
      row_stats[stat_row] = largest;
      row_stats[32u + stat_row] = fma(row_stats[32u + stat_row], factor, sum);
      row_stats[64u + stat_row] = factor;
    }
    o0 = add_value_tile(o0, 0u, first_key, head, thread);
    if (d > 64u) {
      o1 = add_value_tile(o1, 1u, first_key, head, thread);
    }
    if (d > 128u) {
      o2 = add_value_tile(o2, 2u, first_key, head, thread);
    }
    if (d > 192u) {
      o3 = add_value_tile(o3, 3u, first_key, head, thread);
    }
  }
  write_two_rows(o0, 0u, first_query, head, thread);
  if (d > 64u) {
    write_two_rows(o1, 1u, first_query, head, thread);
  }
  if (d > 128u) {
    write_two_rows(o2, 2u, first_query, head, thread);
  }
  if (d > 192u) {
    write_two_rows(o3, 3u, first_query, head, thread);
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let place = group.z * groups.x + group.x;
  let head = group.y;
  if (params.T >= 32u) {
    if (place < (params.T + 31u) / 32u) {
      attend_many(32u * place, head, thread);
    }
  } else if (place < params.T) {
    attend_one(place, head, thread);
  }
}
