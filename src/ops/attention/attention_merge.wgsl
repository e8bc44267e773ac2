// Second half of attention_chunks.wgsl: a workgroup merges the chunks of one head of one token. Threads
// of a group, one to a vec4 of the head, take every GROUPS-th chunk; the groups are summed in order.
//   FOURS     vec4s of a head
//   GROUPS    256 / FOURS, at most 64
#include 'ops/attention/attention_visibility.wgsl'
#include 'ops/attention/attention_output.wgsl'

@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;

const kNoScore = -1.0e30;
var<workgroup> largest: array<f32, 64>;
var<workgroup> sums: array<vec4<f32>, ${GROUPS * FOURS}>;
var<workgroup> weight_sums: array<f32, ${GROUPS}>;

// Largest score and sum of weights of a chunk.
fn stats_of(chunk: u32) -> vec2<f32> {
  let two = partials[params.n_tokens * params.n_heads * params.n_chunks * ${FOURS}u + chunk / 2u];
  return select(two.xy, two.zw, (chunk & 1u) == 1u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) n_workgroups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = workgroup.y * n_workgroups.x + workgroup.x;
  let token = i / params.n_heads;
  if (token >= live_tokens()) {  // the whole workgroup
    return;
  }
  if (sequence_of(token) < 0) {  // the whole workgroup
    return;
  }
  let seen = visible_keys(token);
  let n_chunks = select((seen.y + 63u) / 64u - seen.x / 64u, 0u, seen.x == seen.y);
  let first = i * params.n_chunks;

  if (thread < 64u) {
    var part = kNoScore;
    for (var chunk = thread; chunk < n_chunks; chunk += 64u) {
      part = max(part, stats_of(first + chunk).x);
    }
    largest[thread] = part;
  }
  workgroupBarrier();
  var of_all = kNoScore;
  for (var n = 0u; n < 64u; n++) {
    of_all = max(of_all, largest[n]);
  }
  let column = thread % ${FOURS}u;
  let group = thread / ${FOURS}u;
  if (group < ${GROUPS}u) {
    var sum = vec4<f32>(0.0);
    var weight_sum = 0.0;
    for (var chunk = group; chunk < n_chunks; chunk += ${GROUPS}u) {
      let stats = stats_of(first + chunk);
      let weight = exp2(stats.x - of_all);
      sum = fma(partials[(first + chunk) * ${FOURS}u + column], vec4<f32>(weight), sum);
      weight_sum = fma(stats.y, weight, weight_sum);
    }
    sums[thread] = sum;
    if (column == 0u) {
      weight_sums[group] = weight_sum;
    }
  }
  workgroupBarrier();
  if (thread < ${FOURS}u) {
    var sum = vec4<f32>(0.0);
    var weight_sum = 0.0;
    for (var n = 0u; n < ${GROUPS}u; n++) {
      sum += sums[n * ${FOURS}u + thread];
      weight_sum += weight_sums[n];
    }
    // No key: zeros.
    write_four(token, i % params.n_heads, thread, sum * select(0.0, 1.0 / weight_sum, weight_sum > 0.0));
  }
}
