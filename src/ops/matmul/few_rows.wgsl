#if SUBGROUPS
enable subgroups;
#endif
// y = x w^T (+ bias) (+ residual) for few rows of x, up to three weights that share it, x as it is or
// normalised: decoding, where all that counts is how fast weights arrive. Teams of threads have a few
// columns each: a thread takes every TEAM-th eight of a row of weights, decodes it once for all rows
// of x, and a team adds up its parts in a tree. No thread waits for another before its last sum:
// with NORM the root of the mean square is taken of the same values in the same pass, and the sums
// are scaled by it in the end.
//   WEIGHT ALIGNED  as in weight_eight_load.wgsl
//   PARTS OUTPUTS   weights, and as many outputs one behind the other in the grid; with GATE two
//                   weights side by side, and one output
//   GATE            1: y = silu(x w0^T) * (x w1^T)
//   NORM            1: x / sqrt(mean(x^2) + eps) * norm_weight takes the place of x
//   ROWS            of x
//   WIDTH           4: x and norm_weight are addressed as vec4s, which x_first, x_stride and norm_first
//                   count, and their rows have a multiple of eight values; else 1
//   THREADS         of a workgroup, a power of two
//   TEAM LOG_TEAM   threads of a team, a power of two and its logarithm
//   COLUMNS         of a team; ROWS * COLUMNS <= TEAM
//   UNROLL FULL     steps of a thread whose loads are on their way together; 1: there are n_chunks full
//                   chunks of so many
//   TAIL GUARD      steps behind these; 1: in the last of them some threads have nothing to do
//   SUBGROUPS       1: the tree begins inside of subgroups, which are runs of neighbouring threads
//   BIAS RESIDUAL   1: bindings that are there (BIAS: one for each weight)
//   LIVE            1: rows from live[live_first] on are not written
// All variants sum in an order that depends on TEAM and on the size of subgroups alone.
struct Params {
  depth: u32,
  x_first: u32,
  x_stride: u32,
  norm_first: u32,
  eps: f32,
  residual_first: u32,
  residual_stride: u32,
  live_first: u32,
  n_chunks: u32,
#for w in 0..PARTS
  end${w}: u32,  // workgroups up to the end of this output
  n_columns${w}: u32,
  y_first${w}: u32,
  y_stride${w}: u32,
  w_first_byte${w}: u32,
  w_row_bytes${w}: u32,
  bias_first${w}: u32,
#endfor
}
#for w in 0..OUTPUTS
@group(0) @binding(${w}) var<storage, read_write> y${w}: array<f32>;
#endfor
#if WIDTH == 4
@group(0) @binding(${OUTPUTS}) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(${OUTPUTS}) var<storage, read> x: array<f32>;
#endif
#for w in 0..PARTS
#if ALIGNED && (WEIGHT == 'f32' || WEIGHT == 'f16' || WEIGHT == 'bf16')
@group(0) @binding(${OUTPUTS + 1 + w}) var<storage, read> weights${w}: array<vec4<u32>>;
#else
@group(0) @binding(${OUTPUTS + 1 + w}) var<storage, read> weights${w}: array<u32>;
#endif
#endfor
#if NORM
#if WIDTH == 4
@group(0) @binding(${OUTPUTS + 1 + PARTS}) var<storage, read> norm_weight: array<vec4<f32>>;
#else
@group(0) @binding(${OUTPUTS + 1 + PARTS}) var<storage, read> norm_weight: array<f32>;
#endif
#endif
#if BIAS
#for w in 0..OUTPUTS
@group(0) @binding(${OUTPUTS + 1 + PARTS + NORM + w}) var<storage, read> bias${w}: array<f32>;
#endfor
#endif
#if RESIDUAL
@group(0) @binding(${OUTPUTS + 1 + PARTS + NORM + BIAS * OUTPUTS}) var<storage, read> residual: array<f32>;
#endif
#if LIVE
@group(0) @binding(${OUTPUTS + 1 + PARTS + NORM + BIAS * OUTPUTS + RESIDUAL}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${OUTPUTS + 1 + PARTS + NORM + BIAS * OUTPUTS + RESIDUAL + LIVE}) var<uniform> params: Params;

#include 'ops/quantize/weight_eight.wgsl'
#for w in 0..PARTS
#include 'ops/quantize/weight_eight_load.wgsl'
#endfor

// A part of a sum for each output of a team: its columns of a row, with GATE those of both weights;
// with NORM also the sum of squares of the row. Subgroups have at least four threads.
var<workgroup> parts: array<f32, ${ROWS * (COLUMNS * (1 + GATE) + NORM) * THREADS / (1 + 3 * SUBGROUPS)}>;

fn x_four(first: u32, i: u32) -> vec4<f32> {
#if WIDTH == 4
  return x[first + i];
#else
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < params.depth) {
    result[${k}] = x[first + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}
#if NORM
fn norm_four(i: u32) -> vec4<f32> {
#if WIDTH == 4
  return norm_weight[params.norm_first + i];
#else
  var result = vec4<f32>(0.0);
#for k in 0..4
  if (4u * i + ${k}u < params.depth) {
    result[${k}] = norm_weight[params.norm_first + 4u * i + ${k}u];
  }
#endfor
  return result;
#endif
}
#endif

#if GATE
fn silu(v: f32) -> f32 {
  let e = exp(-abs(v));
  return v * select(1.0, e, v < 0.0) / (1.0 + e);
}
#endif

// The sum over the `n` parts of a team, the first of which is at `first`.
fn total(output: u32, first: u32, n: u32) -> f32 {
  let begin = output * ${THREADS / (1 + 3 * SUBGROUPS)}u + first;
  var sum = parts[begin];
  for (var i = 1u; i < n; i++) {
    sum += parts[begin + i];
  }
  return sum;
}

#for w in 0..OUTPUTS
// The parts of the team's columns, of which the first may be behind the last of the weight: it then
// sums that one again and again for nobody.
fn sum_parts${w}(first_column: u32, thread: u32, subgroup_size: u32) {
  let lane = thread % ${TEAM}u;
  let n_eights = (params.depth + 7u) / 8u;
#for c in 0..COLUMNS
  let column${c} = min(first_column + ${c}u, params.n_columns${w} - 1u);
#for g in 0..1 + GATE
  let row${g * COLUMNS + c} = params.w_first_byte${w + g} + column${c} * params.w_row_bytes${w + g};
#endfor
#endfor
#for r in 0..ROWS
  let x_row${r} = params.x_first + ${r}u * params.x_stride;
#for c in 0..COLUMNS * (1 + GATE)
  var sum${r}_${c} = 0.0;
#endfor
#if NORM
  var squares${r} = vec4<f32>(0.0);
#endif
#endfor
#if FULL
  var u = lane;
#else
  let u = lane;
#endif
#for rest in (FULL == 0)..2
#if rest
  {
#else
  for (var chunk = 0u; chunk < params.n_chunks; chunk++) {
#endif
#for s in 0..rest * TAIL + (1 - rest) * UNROLL
#if rest && GUARD && s == TAIL - 1
    // Threads without an eight in the last step take the last one again, times zero.
    let inside = u + ${s * TEAM}u < n_eights;
    let u${s} = min(u + ${s * TEAM}u, n_eights - 1u);
#else
    let u${s} = u + ${s * TEAM}u;
#endif
#for g in 0..1 + GATE
#for c in 0..COLUMNS
    let w${s}_${g * COLUMNS + c} = eight${w + g}(row${g * COLUMNS + c}, u${s}, params.depth);
#endfor
#endfor
    let fours${s} = fours_of(u${s});
#if NORM
    let norm${s}_low = norm_four(fours${s}.x);
    let norm${s}_high = norm_four(fours${s}.y);
#endif
#for r in 0..ROWS
    var x${s}_${r}_low = x_four(x_row${r}, fours${s}.x);
    var x${s}_${r}_high = x_four(x_row${r}, fours${s}.y);
#if rest && GUARD && s == TAIL - 1
    x${s}_${r}_low = select(vec4<f32>(0.0), x${s}_${r}_low, inside);
    x${s}_${r}_high = select(vec4<f32>(0.0), x${s}_${r}_high, inside);
#endif
#endfor
#endfor
#for s in 0..rest * TAIL + (1 - rest) * UNROLL
#for r in 0..ROWS
#if NORM
    squares${r} = fma(x${s}_${r}_low, x${s}_${r}_low, squares${r});
    squares${r} = fma(x${s}_${r}_high, x${s}_${r}_high, squares${r});
    x${s}_${r}_low *= norm${s}_low;
    x${s}_${r}_high *= norm${s}_high;
#endif
#for c in 0..COLUMNS * (1 + GATE)
    sum${r}_${c} = add_product(sum${r}_${c}, w${s}_${c}, x${s}_${r}_low, x${s}_${r}_high);
#endfor
#endfor
#endfor
#if rest == 0
    u += ${UNROLL * TEAM}u;
#endif
  }
#endfor
#for r in 0..ROWS
#if NORM
  var square${r} = sum_four(squares${r});
#endif
#endfor
#if SUBGROUPS
#for log_step in 0..LOG_TEAM
  if (subgroup_size > (1u << ${log_step}u)) {
#for r in 0..ROWS
#for c in 0..COLUMNS * (1 + GATE)
    sum${r}_${c} += subgroupShuffleXor(sum${r}_${c}, 1u << ${log_step}u);
#endfor
#if NORM
    square${r} += subgroupShuffleXor(square${r}, 1u << ${log_step}u);
#endif
#endfor
  }
#endfor
#endif
  if (thread % subgroup_size == 0u) {
    let at = thread / subgroup_size;
#for r in 0..ROWS
#for c in 0..COLUMNS * (1 + GATE)
    parts[${(r * (COLUMNS * (1 + GATE) + NORM) + c) * (THREADS / (1 + 3 * SUBGROUPS))}u + at] = sum${r}_${c};
#endfor
#if NORM
    parts[${(r * (COLUMNS * (1 + GATE) + NORM) + COLUMNS * (1 + GATE)) * (THREADS / (1 + 3 * SUBGROUPS))}u + at] = square${r};
#endif
#endfor
  }
}
#endfor

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
#if SUBGROUPS
        @builtin(subgroup_size) size: u32,
#endif
        @builtin(local_invocation_index) thread: u32) {
#if SUBGROUPS
  let subgroup_size = min(size, ${TEAM}u);
#else
  let subgroup_size = 1u;
#endif
#if LIVE
  let n_rows = min(${ROWS}u, live[params.live_first]);
#else
  let n_rows = ${ROWS}u;
#endif
  let number = group.y * n_groups.x + group.x;
  // The output of this thread in the end: rows of x by columns of the workgroup.
  let row = thread / ${THREADS / TEAM * COLUMNS}u;
  let column_in_group = thread % ${THREADS / TEAM * COLUMNS}u;
  let team = thread / ${TEAM}u;
  var group_in_part = number;
#if OUTPUTS > 1
  var part = 0u;
#for w in 1..OUTPUTS
  if (number >= params.end${w - 1}) {
    part = ${w}u;
    group_in_part = number - params.end${w - 1};
  }
#endfor
#endif
  let group_column = group_in_part * ${THREADS / TEAM * COLUMNS}u;
  let column = group_column + column_in_group;
  var addend = 0.0;
#for w in 0..OUTPUTS
#if OUTPUTS > 1
  if (part == ${w}u) {
#endif
#if BIAS || RESIDUAL
    if (row < ${ROWS}u && column < params.n_columns${w}) {
#if BIAS
      addend = bias${w}[params.bias_first${w} + column];
#endif
#if RESIDUAL
      addend += residual[params.residual_first + row * params.residual_stride + column];
#endif
    }
#endif
    sum_parts${w}(group_column + team * ${COLUMNS}u, thread, subgroup_size);
#if OUTPUTS > 1
  }
#endif
#endfor
  workgroupBarrier();
  if (row >= n_rows) {
    return;
  }
  let n_parts = ${TEAM}u / subgroup_size;
  let first = column_in_group / ${COLUMNS}u * n_parts;
  let output = row * ${COLUMNS * (1 + GATE) + NORM}u + column_in_group % ${COLUMNS}u;
  var value = total(output, first, n_parts);
#if NORM
  let square = total(row * ${COLUMNS * (1 + GATE) + NORM}u + ${COLUMNS * (1 + GATE)}u, first, n_parts);
  let scale = inverseSqrt(square / f32(params.depth) + params.eps);
  value *= scale;
#endif
#if GATE
  var up = total(output + ${COLUMNS}u, first, n_parts);
#if NORM
  up *= scale;
#endif
  value = silu(value) * up;
#endif
  value += addend;
#for w in 0..OUTPUTS
#if OUTPUTS > 1
  if (part == ${w}u && column < params.n_columns${w}) {
#else
  if (column < params.n_columns${w}) {
#endif
    y${w}[params.y_first${w} + row * params.y_stride${w} + column] = value;
  }
#endfor
}
