// To be included: sums and maxima over teams of neighbouring threads in a workgroup of 256.
//   TEAM   16, 64 or 256 threads
// Every thread gets its team's result. Each call has two barriers: the second lies between the reads
// of of_threads and what the next call writes there, the first of the next call between the reads of
// of_parts and what it writes there.
var<workgroup> of_threads: array<f32, 256>;
// One for each `fan` threads, fan being the root of TEAM: what one thread adds up in either step.
var<workgroup> of_parts: array<f32, ${(TEAM == 16) * 64 + (TEAM == 64) * 32 + (TEAM == 256) * 16}>;

const kFan = ${(TEAM == 16) * 4 + (TEAM == 64) * 8 + (TEAM == 256) * 16}u;

fn sum_of(x: vec4<f32>) -> f32 {
  return (x.x + x.y) + (x.z + x.w);
}

fn max_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn team_sum(value: f32, thread: u32) -> f32 {
  let lane = thread % ${TEAM}u;
  let first = thread - lane;
  of_threads[thread] = value;
  workgroupBarrier();
  if (lane < kFan) {
    var sum = 0.0;
    for (var k = first + lane; k < first + ${TEAM}u; k += 4u * kFan) {
      sum += sum_of(vec4<f32>(of_threads[k], of_threads[k + kFan], of_threads[k + 2u * kFan],
                              of_threads[k + 3u * kFan]));
    }
    of_parts[first / kFan + lane] = sum;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var k = first / kFan; k < first / kFan + kFan; k += 4u) {
    total += sum_of(vec4<f32>(of_parts[k], of_parts[k + 1u], of_parts[k + 2u], of_parts[k + 3u]));
  }
  return total;
}

fn team_max(value: f32, thread: u32) -> f32 {
  let lane = thread % ${TEAM}u;
  let first = thread - lane;
  of_threads[thread] = value;
  workgroupBarrier();
  if (lane < kFan) {
    var largest = of_threads[first + lane];
    for (var k = first + lane; k < first + ${TEAM}u; k += 4u * kFan) {
      largest = max(largest, max_of(vec4<f32>(of_threads[k], of_threads[k + kFan],
                                              of_threads[k + 2u * kFan],
                                              of_threads[k + 3u * kFan])));
    }
    of_parts[first / kFan + lane] = largest;
  }
  workgroupBarrier();
  var total = of_parts[first / kFan];
  for (var k = first / kFan; k < first / kFan + kFan; k += 4u) {
    total = max(total, max_of(vec4<f32>(of_parts[k], of_parts[k + 1u], of_parts[k + 2u],
                                        of_parts[k + 3u])));
  }
  return total;
}
