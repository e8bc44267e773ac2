// Attention of many queries. A workgroup makes ROWS rows: a row is one query head of one token, heads of
// one KV head being neighbours, so that they share its keys and values. It walks over the keys of each
// sequence in its rows KEYS at a time, with running maximum and sum (Dao 2023, FlashAttention-2).
// Thread (tx, ty) holds the rows ty + TY i; of the scores the keys 4 (tx + TX h) + 0..3, of the output
// the vec4s tx + TX c. A row's result depends on nothing but its query and its keys: tiles begin at
// multiples of KEYS, and a key that it does not see counts for exactly nothing.
//   TX TY                 threads
//   THREAD_ROWS           rows of a thread; ROWS = TY THREAD_ROWS
//   THREAD_KEYS           vec4s of scores of a thread and row; KEYS = 4 TX THREAD_KEYS
//   THREAD_FOURS FOURS    vec4s of the output of a thread and row; of a head
//   KV_STRIDE             vec4s between keys; odd, so that neighbouring keys lie in different banks
//   LOADS                 vec4s of keys, and of values, that a thread loads: KEYS FOURS / (TX TY), rounded up
//   UNROLL                vec4s of the depth of scores that a step takes; divides FOURS
//   STAGED                1: queries are copied to workgroup memory first; 0: they are read
//                         where they lie, which leaves room for more workgroups
#include 'ops/attention/attention_visibility.wgsl'
#include 'ops/attention/attention_operands.wgsl'
#include 'ops/attention/attention_output.wgsl'

#if STAGED
var<workgroup> q_tile: array<vec4<f32>, ${ROWS * FOURS}>;
#endif
var<workgroup> kv_tile: array<vec4<f32>, ${KEYS * KV_STRIDE}>;  // keys, then their values
var<workgroup> p_tile: array<vec4<f32>, ${ROWS * KEYS / 4}>;
var<workgroup> parts: array<f32, ${ROWS * TX}>;  // of each row, what each tx has
var<workgroup> row_sequence: array<i32, ${ROWS}>;
var<workgroup> row_keys: array<vec2<u32>, ${ROWS}>;  // that a row sees: first, behind the last
var<workgroup> run: vec4<u32>;

// Rows from `first` on that are of one sequence: the sequence, its first key that one of them sees, the
// one behind the last, and the row behind them.
fn find_run(first: u32) -> vec4<u32> {
  var sequence = -1;
  var begin = 0xffffffffu;
  var end = 0u;
  var next = ${ROWS}u;
  for (var row = 0u; row < ${ROWS}u; row++) {
    let s = row_sequence[row];
    let keys = row_keys[row];
    let open = row >= first && next == ${ROWS}u;
    if (open && sequence >= 0 && s != sequence) {
      next = row;
    } else if (open && s >= 0) {
      sequence = s;
      begin = min(begin, select(keys.x, 0xffffffffu, keys.x == keys.y));
      end = max(end, keys.y);
    }
  }
  return vec4<u32>(u32(max(sequence, 0)), begin, end, next);
}

@compute @workgroup_size(${TX * TY})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let heads_per_kv = params.n_heads / params.n_kv_heads;
  let n_tiles = (params.n_tokens * heads_per_kv + ${ROWS - 1}u) / ${ROWS}u;
  let i = group.y * n_groups.x + group.x;
  if (i >= n_tiles * params.n_kv_heads) {  // the whole workgroup
    return;
  }
  let kv_head = i % params.n_kv_heads;
  // The last tokens see the most keys, so they begin first.
  let first_row = (n_tiles - 1u - i / params.n_kv_heads) * ${ROWS}u;
  let n_tokens = live_tokens();
  let tx = thread % ${TX}u;
  let ty = thread / ${TX}u;

  for (var row = thread; row < ${ROWS}u; row += ${TX * TY}u) {
    let token = (first_row + row) / heads_per_kv;
    var sequence = -1;
    var keys = vec2<u32>(0u);
    if (token < n_tokens) {
      sequence = sequence_of(token);
      if (sequence >= 0) {
        keys = visible_keys(token);
      }
    }
    row_sequence[row] = sequence;
    row_keys[row] = keys;
  }
#if STAGED
  for (var e = thread; e < ${ROWS * FOURS}u; e += ${TX * TY}u) {
    let row = first_row + e / ${FOURS}u;
    let token = row / heads_per_kv;
    var x = vec4<f32>(0.0);
    if (token < n_tokens) {
      x = query_four(token, kv_head * heads_per_kv + row % heads_per_kv, e % ${FOURS}u);
    }
    q_tile[e] = x;
  }
#else
#for i in 0..THREAD_ROWS
  // What a row behind the last one gives is not written.
  let row${i} = min(first_row + ty + ${TY * i}u, params.n_tokens * heads_per_kv - 1u);
  let token${i} = row${i} / heads_per_kv;
  let head${i} = kv_head * heads_per_kv + row${i} % heads_per_kv;
#endfor
#endif

  // The part of every tile that a thread loads: vec4 c of a key. Thread tx reads the keys 4 tx + n of
  // all tx at once, so that they are neighbours in the tile; values are in order.
#for n in 0..LOADS
  let key${n} = min((thread + ${TX * TY * n}u) / ${FOURS}u, ${KEYS - 1}u);
  let c${n} = (thread + ${TX * TY * n}u) % ${FOURS}u;
  let value_place${n} = key${n} * ${KV_STRIDE}u + c${n};
  let key_place${n} = (key${n} / 4u % ${TX}u + ${TX}u * (key${n} / ${4 * TX}u * 4u + key${n} % 4u)) *
                      ${KV_STRIDE}u + c${n};
#endfor

#for i in 0..THREAD_ROWS
  var largest${i} = kNoScore;
  var sum${i} = 0.0;
#for c in 0..THREAD_FOURS
  var o${i}_${c} = vec4<f32>(0.0);
#endfor
#endfor
  // Where a thread has no column of the output it makes the last one again.
#for c in 0..THREAD_FOURS
  let column${c} = min(tx + ${TX * c}u, ${FOURS - 1}u);
#endfor

  var next_row = 0u;
  while (next_row < ${ROWS}u) {
    workgroupBarrier();
    if (thread == 0u) {
      run = find_run(next_row);
    }
    let rows = workgroupUniformLoad(&run);
    next_row = rows.w;
    if (rows.y >= rows.z) {  // no row sees a key
      continue;
    }
    let sequence = i32(rows.x);
    // Keys that no row sees are replaced by some that one does. What the next step needs is loaded
    // before this one computes.
    var first_key = rows.y / ${KEYS}u * ${KEYS}u;
#for n in 0..LOADS
    var place${n} = key_rows_at(rows.x, clamp(first_key + key${n}, rows.y, rows.z - 1u), kv_head);
    var key_part${n} = key_four(place${n}.x, c${n});
#endfor
    for (; first_key < rows.z; first_key += ${KEYS}u) {
#for n in 0..LOADS
#if TX * TY * (n + 1) <= KEYS * FOURS
      kv_tile[key_place${n}] = key_part${n};
#else
      if (thread < ${KEYS * FOURS - TX * TY * n}u) {
        kv_tile[key_place${n}] = key_part${n};
      }
#endif
      let value_part${n} = value_four(place${n}.y, c${n});
#endfor
      workgroupBarrier();

#for i in 0..THREAD_ROWS
#for h in 0..THREAD_KEYS
      var s${i}_${h} = vec4<f32>(0.0);
#endfor
#endfor
      for (var pass_c = 0u; pass_c < ${FOURS}u; pass_c += ${UNROLL}u) {
#for u in 0..UNROLL
        {
        let c = pass_c + ${u}u;
#for h in 0..THREAD_KEYS
#for n in 0..4
        let k${h}_${n} = kv_tile[(tx + ${TX * (4 * h + n)}u) * ${KV_STRIDE}u + c];
#endfor
#for n in 0..4
        let across${h}_${n} =
            vec4<f32>(k${h}_0[${n}], k${h}_1[${n}], k${h}_2[${n}], k${h}_3[${n}]);
#endfor
#endfor
#for i in 0..THREAD_ROWS
#if STAGED
        let q${i} = q_tile[(ty + ${TY * i}u) * ${FOURS}u + c];
#else
        let q${i} = query_four(token${i}, head${i}, c);
#endif
#for h in 0..THREAD_KEYS
#for n in 0..4
        s${i}_${h} = fma(across${h}_${n}, vec4<f32>(q${i}[${n}]), s${i}_${h});
#endfor
#endfor
#endfor
        }
#endfor
      }

      let tile_end = first_key + ${KEYS}u;
#for i in 0..THREAD_ROWS
      var part${i} = kNoScore;
      let keys${i} = select(vec2<u32>(0u), row_keys[ty + ${TY * i}u],
                            row_sequence[ty + ${TY * i}u] == sequence);
      let all_seen${i} = keys${i}.x <= first_key && tile_end <= keys${i}.y;
#for h in 0..THREAD_KEYS
      s${i}_${h} = score_of(s${i}_${h});
      if (!all_seen${i}) {
        let key = vec4<u32>(first_key + 4u * (tx + ${TX * h}u)) + vec4<u32>(0u, 1u, 2u, 3u);
        s${i}_${h} = select(vec4<f32>(kNoScore), s${i}_${h},
                            (key >= vec4<u32>(keys${i}.x)) & (key < vec4<u32>(keys${i}.y)));
      }
      part${i} = max(part${i}, max(max(s${i}_${h}.x, s${i}_${h}.y), max(s${i}_${h}.z, s${i}_${h}.w)));
#endfor
      parts[(ty + ${TY * i}u) * ${TX}u + tx] = part${i};
#endfor
      workgroupBarrier();
#for n in 0..LOADS
#if TX * TY * (n + 1) <= KEYS * FOURS
      kv_tile[value_place${n}] = value_part${n};
#else
      if (thread < ${KEYS * FOURS - TX * TY * n}u) {
        kv_tile[value_place${n}] = value_part${n};
      }
#endif
#endfor
#for i in 0..THREAD_ROWS
      var new_largest${i} = largest${i};
#for n in 0..TX
      new_largest${i} = max(new_largest${i}, parts[(ty + ${TY * i}u) * ${TX}u + ${n}u]);
#endfor
      let factor${i} = exp2(largest${i} - new_largest${i});
      largest${i} = new_largest${i};
      var tile_sum${i} = 0.0;
#for h in 0..THREAD_KEYS
      // A score that is none must not count while nothing has been seen either.
      let p${i}_${h} = select(exp2(s${i}_${h} - largest${i}), vec4<f32>(0.0),
                              s${i}_${h} <= vec4<f32>(kNoScore));
      tile_sum${i} += (p${i}_${h}.x + p${i}_${h}.y) + (p${i}_${h}.z + p${i}_${h}.w);
      p_tile[(ty + ${TY * i}u) * ${KEYS / 4}u + tx + ${TX * h}u] = p${i}_${h};
#endfor
      sum${i} = fma(sum${i}, factor${i}, tile_sum${i});
#for c in 0..THREAD_FOURS
      o${i}_${c} *= factor${i};
#endfor
#endfor
      workgroupBarrier();
#for n in 0..LOADS
      place${n} = key_rows_at(rows.x, clamp(tile_end + key${n}, rows.y, rows.z - 1u), kv_head);
      key_part${n} = key_four(place${n}.x, c${n});
#endfor
      for (var four = 0u; four < ${KEYS / 4}u; four++) {
#for i in 0..THREAD_ROWS
        let weight${i} = p_tile[(ty + ${TY * i}u) * ${KEYS / 4}u + four];
#endfor
#for n in 0..4
#for c in 0..THREAD_FOURS
        let v${n}_${c} = kv_tile[(4u * four + ${n}u) * ${KV_STRIDE}u + column${c}];
#for i in 0..THREAD_ROWS
        o${i}_${c} = fma(v${n}_${c}, vec4<f32>(weight${i}[${n}]), o${i}_${c});
#endfor
#endfor
#endfor
      }
      workgroupBarrier();
    }
  }

  workgroupBarrier();  // the maxima of the last tile have been read
#for i in 0..THREAD_ROWS
  parts[(ty + ${TY * i}u) * ${TX}u + tx] = sum${i};
#endfor
  workgroupBarrier();
#for i in 0..THREAD_ROWS
  if (row_sequence[ty + ${TY * i}u] >= 0) {
    var total = 0.0;
#for n in 0..TX
    total += parts[(ty + ${TY * i}u) * ${TX}u + ${n}u];
#endfor
    // No key, no weight: zeros.
    let inverse = select(0.0, 1.0 / total, total > 0.0);
    let row = first_row + ty + ${TY * i}u;
    let head = kv_head * heads_per_kv + row % heads_per_kv;
#for c in 0..THREAD_FOURS
    if (tx + ${TX * c}u < ${FOURS}u) {
      write_four(row / heads_per_kv, head, column${c}, inverse * o${i}_${c});
    }
#endfor
  }
#endfor
}
