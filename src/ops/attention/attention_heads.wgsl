// Attention of few queries over a few hundred keys, in one dispatch: a workgroup takes one query head of
// one token and all its keys. What chunks of keys side by side (attention_chunks.wgsl) gain in reading
// they lose here by the second dispatch.
//   THREADS          of a workgroup, a multiple of 64
//   FOURS            vec4s of a head, at most 64
//   KEY_FOURS        of a key that one of its four threads reads: FOURS / 4, rounded up
//   MAX_KEYS         that a query may see: a multiple of THREADS
//   ROUND_KEYS       whose products are made at a time: THREADS / 4
//   ROUNDS           MAX_KEYS / ROUND_KEYS, even
//   VALUE_GROUPS     keys whose values are summed side by side: THREADS / FOURS
//   AHEAD            keys of each of them whose values are loaded before the first barrier
//   PARTS            threads that share the last sum of a dimension: THREADS / (4 FOURS)
#include 'ops/attention/attention_visibility.wgsl'
#include 'ops/attention/attention_operands.wgsl'
#include 'ops/attention/attention_output.wgsl'

// Distances that keep neighbouring threads in different banks.
const kKeyStride = ${MAX_KEYS + 8}u;
const kThreadStride = ${THREADS + 8}u;
// Four parts of each product; later the sums of values, a component behind the other.
var<workgroup> exchange: array<f32, ${EXCHANGE}>;
// Scores, then their weights, at last parts of sums.
var<workgroup> weights: array<f32, ${MAX_KEYS}>;
var<workgroup> of_columns: array<f32, 64>;  // of every 64th
var<workgroup> of_four: array<vec4<f32>, 2>;  // the largest, and the sum, of every fourth of these

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = group.y * n_groups.x + group.x;
  let head = i % params.n_heads;
  let token = i / params.n_heads;
  if (token >= live_tokens()) {  // the whole workgroup, as below
    return;
  }
  let sequence = sequence_of(token);
  if (sequence < 0) {
    return;
  }
  let seen = visible_keys(token);
  let n_keys = seen.y - seen.x;
  if (n_keys == 0u) {
    if (thread < ${FOURS}u) {
      write_four(token, head, thread, vec4<f32>(0.0));
    }
    return;
  }
  let kv_head = head / (params.n_heads / params.n_kv_heads);
  let last = seen.y - 1u;

  let column = thread % ${FOURS}u;
  let value_group = thread / ${FOURS}u;
#for n in 0..AHEAD
  let ahead${n} = value_four(
      key_rows_at(u32(sequence), min(seen.x + value_group + ${VALUE_GROUPS * n}u, last), kv_head).y, column);
#endfor

  // Four threads to a key, sixteen-byte units taken in turn. Keys behind the last are replaced by it.
  let quarter = thread % 4u;
#for n in 0..KEY_FOURS
  let query${n} = query_four(token, head, min(quarter + ${4 * n}u, ${FOURS - 1}u));
#endfor
#for pair in 0..ROUNDS / 2
  if (${2 * pair * ROUND_KEYS}u < n_keys) {
#for r in 0..2
    let key${r} = ${(2 * pair + r) * ROUND_KEYS}u + thread / 4u;
    let row${r} = key_rows_at(u32(sequence), min(seen.x + key${r}, last), kv_head).x;
#for n in 0..KEY_FOURS
    let k${r}_${n} = key_four(row${r}, min(quarter + ${4 * n}u, ${FOURS - 1}u));
#endfor
#endfor
#for r in 0..2
    var product${r} = vec4<f32>(0.0);
#for n in 0..KEY_FOURS
#if 4 * n + 3 < FOURS
    product${r} = fma(query${n}, k${r}_${n}, product${r});
#else
    if (quarter + ${4 * n}u < ${FOURS}u) {
      product${r} = fma(query${n}, k${r}_${n}, product${r});
    }
#endif
#endfor
    exchange[quarter * kKeyStride + key${r}] =
        (product${r}.x + product${r}.y) + (product${r}.z + product${r}.w);
#endfor
  }
#endfor
  workgroupBarrier();
#for n in 0..MAX_KEYS / THREADS
  let key_of${n} = thread + ${n * THREADS}u;
  let sum_of${n} = (exchange[key_of${n}] + exchange[kKeyStride + key_of${n}]) +
                   (exchange[2u * kKeyStride + key_of${n}] + exchange[3u * kKeyStride + key_of${n}]);
  let score${n} = select(kNoScore, score_of(vec4<f32>(sum_of${n})).x, key_of${n} < n_keys);
  weights[key_of${n}] = score${n};
#endfor
  workgroupBarrier();
  if (thread < 64u) {
    var largest = weights[thread];
    for (var n = 1u; n < ${MAX_KEYS / 64}u; n++) {
      largest = max(largest, weights[thread + 64u * n]);
    }
    of_columns[thread] = largest;
  }
  workgroupBarrier();
  if (thread < 4u) {
    var largest = of_columns[thread];
    for (var n = 1u; n < 16u; n++) {
      largest = max(largest, of_columns[thread + 4u * n]);
    }
    of_four[0][thread] = largest;
  }
  workgroupBarrier();
  let largest_four = max(of_four[0].xy, of_four[0].zw);
  let largest = max(largest_four.x, largest_four.y);
#for n in 0..MAX_KEYS / THREADS
  weights[key_of${n}] = select(exp2(score${n} - largest), 0.0, score${n} <= kNoScore);
#endfor
  workgroupBarrier();

  var sum = vec4<f32>(0.0);
#for n in 0..AHEAD
#if VALUE_GROUPS * (n + 1) < MAX_KEYS
  {
#else
  if (value_group + ${VALUE_GROUPS * n}u < ${MAX_KEYS}u) {
#endif
    sum = fma(ahead${n}, vec4<f32>(weights[value_group + ${VALUE_GROUPS * n}u]), sum);
  }
#endfor
  for (var key = value_group + ${VALUE_GROUPS * AHEAD}u; key < n_keys; key += ${4 * VALUE_GROUPS}u) {
#for n in 0..4
    let v${n} = value_four(
        key_rows_at(u32(sequence), min(seen.x + key + ${VALUE_GROUPS * n}u, last), kv_head).y, column);
#endfor
#for n in 0..4
    if (key + ${VALUE_GROUPS * n}u < ${MAX_KEYS}u) {
      sum = fma(v${n}, vec4<f32>(weights[key + ${VALUE_GROUPS * n}u]), sum);
    }
#endfor
  }
#for n in 0..4
  exchange[${n}u * kThreadStride + thread] = sum[${n}];
#endfor
  if (thread < 64u) {
    var total = weights[thread];
    for (var n = 1u; n < ${MAX_KEYS / 64}u; n++) {
      total += weights[thread + 64u * n];
    }
    of_columns[thread] = total;
  }
  workgroupBarrier();
  let dimension = thread % ${4 * FOURS}u;
  let part = thread / ${4 * FOURS}u;
  if (part < ${PARTS}u) {
    var total = 0.0;
    for (var n = part; n < ${VALUE_GROUPS}u; n += ${PARTS}u) {
      total += exchange[dimension % 4u * kThreadStride + n * ${FOURS}u + dimension / 4u];
    }
    weights[part * ${4 * FOURS}u + dimension] = total;
  }
  if (thread < 4u) {
    var total = of_columns[thread];
    for (var n = 1u; n < 16u; n++) {
      total += of_columns[thread + 4u * n];
    }
    of_four[1][thread] = total;
  }
  workgroupBarrier();
  if (thread < ${FOURS}u) {
    var total = vec4<f32>(0.0);
    for (var n = 0u; n < ${PARTS}u; n++) {
      let at = n * ${4 * FOURS}u + 4u * thread;
      total += vec4<f32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    }
    write_four(token, head, thread, total * (1.0 / sum_four(of_four[1])));
  }
}

fn sum_four(a: vec4<f32>) -> f32 {
  return (a.x + a.y) + (a.z + a.w);
}
