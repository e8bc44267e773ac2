// Attention of few queries over many keys (Dao et al. 2023, Flash-Decoding). A workgroup takes one token,
// up to HEADS query heads of one KV head, and the 64 keys of one chunk; chunks begin at multiples of 64
// positions, so that a result does not depend on the batch. All loads of a thread are started before the
// first barrier. What a chunk gives goes to `partials` for attention_merge.wgsl; where a query cannot see
// more than one chunk (WHOLE), to the output at once.
//   HEADS            query heads of a workgroup
//   FOURS            vec4s of a head, at most 64
//   KEY_FOURS        of a key that one of its four threads reads: FOURS / 4, rounded up
//   VALUE_GROUPS     keys whose values are summed side by side: 256 / FOURS, at most 64
//   GROUP_KEYS       keys that each of them sums: 64 / VALUE_GROUPS, rounded up
//   PASS_HEADS       heads whose sums are exchanged at a time
//   WHOLE            1: there is one chunk
#include 'ops/attention/attention_visibility.wgsl'
#include 'ops/attention/attention_operands.wgsl'
#if WHOLE
#include 'ops/attention/attention_output.wgsl'
#else
// f32 [n_tokens, n_heads, n_chunks, 4 FOURS]: weighted values; then [.., 2]: largest score, sum
@group(0) @binding(0) var<storage, read_write> partials: array<f32>;
#endif

// Between exchanged components, so that neighbouring ones lie in different banks.
const kStride = 264u;
var<workgroup> query: array<vec4<f32>, ${HEADS * FOURS}>;
var<workgroup> exchange: array<f32, ${EXCHANGE}>;
var<workgroup> scores: array<f32, ${64 * HEADS}>;
var<workgroup> weights: array<f32, ${64 * HEADS}>;

fn largest_of(head: u32) -> f32 {
  var result = kNoScore;
  for (var key = 0u; key < 64u; key++) {
    result = max(result, scores[64u * head + key]);
  }
  return result;
}
fn sum_of(head: u32) -> f32 {
  var result = vec4<f32>(0.0);
  for (var key = 0u; key < 64u; key += 4u) {
    let at = 64u * head + key;
    result += vec4<f32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
  }
  return (result.x + result.y) + (result.z + result.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let heads_per_kv = params.n_heads / params.n_kv_heads;
  let n_blocks = (heads_per_kv + ${HEADS - 1}u) / ${HEADS}u;  // of heads
  let i = group.y * n_groups.x + group.x;
  let chunk = i % params.n_chunks;
  let first_head = i / params.n_chunks % n_blocks * ${HEADS}u;
  let kv_head = i / (params.n_chunks * n_blocks) % params.n_kv_heads;
  let token = i / (params.n_chunks * n_blocks * params.n_kv_heads);
  if (token >= live_tokens()) {  // the whole workgroup, as below
    return;
  }
  let sequence = sequence_of(token);
  if (sequence < 0) {
    return;
  }
  let seen = visible_keys(token);
  let base = (seen.x / 64u + chunk) * 64u;
  let begin = max(base, seen.x);
  let end = min(base + 64u, seen.y);
  let n_heads = min(heads_per_kv - first_head, ${HEADS}u);
  let head0 = kv_head * heads_per_kv + first_head;
  if (begin >= end) {
#if WHOLE
    // No key: zeros.
    for (var e = thread; e < n_heads * ${FOURS}u; e += 256u) {
      write_four(token, head0 + e / ${FOURS}u, e % ${FOURS}u, vec4<f32>(0.0));
    }
#endif
    return;
  }

  // Four threads to a key, sixteen-byte units taken in turn. Keys that are not seen are replaced by
  // ones that are, here and for the values.
  let key = thread / 4u;
  let quarter = thread % 4u;
  let key_row = key_rows_at(u32(sequence), clamp(base + key, begin, end - 1u), kv_head).x;
#for n in 0..KEY_FOURS
  let k${n} = key_four(key_row, min(quarter + ${4 * n}u, ${FOURS - 1}u));
#endfor
  let column = thread % ${FOURS}u;
  let value_group = min(thread / ${FOURS}u, ${VALUE_GROUPS - 1}u);
#for n in 0..GROUP_KEYS
  let v${n} = value_four(
      key_rows_at(u32(sequence), clamp(base + value_group + ${VALUE_GROUPS * n}u, begin, end - 1u), kv_head).y, column);
#endfor
  for (var e = thread; e < ${HEADS * FOURS}u; e += 256u) {
    let head = min(e / ${FOURS}u, n_heads - 1u);
    query[e] = query_four(token, head0 + head, e % ${FOURS}u);
  }
  workgroupBarrier();

#for h in 0..HEADS
  {
    var product = vec4<f32>(0.0);
#for n in 0..KEY_FOURS
#if 4 * n + 3 < FOURS
    product = fma(query[${FOURS * h + 4 * n}u + quarter], k${n}, product);
#else
    if (quarter + ${4 * n}u < ${FOURS}u) {
      product = fma(query[${FOURS * h + 4 * n}u + quarter], k${n}, product);
    }
#endif
#endfor
    exchange[${256 * h}u + thread] = (product.x + product.y) + (product.z + product.w);
  }
#endfor
  workgroupBarrier();
  for (var e = thread; e < ${64 * HEADS}u; e += 256u) {
    let at = 4u * e;
    let product = (exchange[at] + exchange[at + 1u]) + (exchange[at + 2u] + exchange[at + 3u]);
    let position = base + e % 64u;
    scores[e] = select(kNoScore, score_of(vec4<f32>(product)).x, position >= begin && position < end);
  }
  workgroupBarrier();
  for (var e = thread; e < ${64 * HEADS}u; e += 256u) {
    weights[e] = select(exp2(scores[e] - largest_of(e / 64u)), 0.0, scores[e] <= kNoScore);
  }
  workgroupBarrier();

#for h in 0..HEADS
  var sum${h} = vec4<f32>(0.0);
#endfor
#for n in 0..GROUP_KEYS
#if VALUE_GROUPS * (n + 1) <= 64
  {
#else
  if (value_group + ${VALUE_GROUPS * n}u < 64u) {
#endif
#for h in 0..HEADS
    sum${h} = fma(v${n}, vec4<f32>(weights[${64 * h + VALUE_GROUPS * n}u + value_group]), sum${h});
#endfor
  }
#endfor
#for pass in 0..(HEADS + PASS_HEADS - 1) / PASS_HEADS
  if (thread < ${VALUE_GROUPS * FOURS}u) {
#for m in 0..PASS_HEADS
#if pass * PASS_HEADS + m < HEADS
#for n in 0..4
    exchange[${4 * m + n}u * kStride + thread] = sum${pass * PASS_HEADS + m}[${n}];
#endfor
#endif
#endfor
  }
  workgroupBarrier();
  for (var e = thread; e < ${PASS_HEADS * FOURS * (4 - 3 * WHOLE)}u; e += 256u) {
#if WHOLE
    let m = e / ${FOURS}u;
    let head = ${pass * PASS_HEADS}u + m;
    let c = e % ${FOURS}u;
    if (head < n_heads) {
      var total = vec4<f32>(0.0);
      for (var n = 0u; n < ${VALUE_GROUPS}u; n++) {
        let at = 4u * m * kStride + n * ${FOURS}u + c;
        total += vec4<f32>(exchange[at], exchange[at + kStride], exchange[at + 2u * kStride],
                           exchange[at + 3u * kStride]);
      }
      write_four(token, head0 + head, c, total * (1.0 / sum_of(head)));
    }
#else
    let m = e / ${4 * FOURS}u;
    let head = ${pass * PASS_HEADS}u + m;
    let at = (4u * m + e % 4u) * kStride + e % ${4 * FOURS}u / 4u;
    if (head < n_heads) {
      var total = 0.0;
      for (var n = 0u; n < ${VALUE_GROUPS}u; n++) {
        total += exchange[at + n * ${FOURS}u];
      }
      let place = (token * params.n_heads + head0 + head) * params.n_chunks + chunk;
      partials[place * ${4 * FOURS}u + e % ${4 * FOURS}u] = total;
    }
#endif
  }
#if pass + 1 < (HEADS + PASS_HEADS - 1) / PASS_HEADS
  workgroupBarrier();
#endif
#endfor
#if !WHOLE
  if (thread < n_heads) {
    let place = (token * params.n_heads + head0 + thread) * params.n_chunks + chunk;
    let stats = params.n_tokens * params.n_heads * params.n_chunks * ${4 * FOURS}u + 2u * place;
    partials[stats] = largest_of(thread);
    partials[stats + 1u] = sum_of(thread);
  }
#endif
}
