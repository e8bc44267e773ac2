// y = x w^T or x w (+ bias) (+ residual) for many rows. A workgroup makes a tile of TILE_ROWS x
// TILE_COLUMNS values, a thread ROWS x COLUMNS of them, in registers; every STEP of the depth the
// tile's rows of x and columns of w go through workgroup memory, decoded once. Every value is one
// chain of multiply-adds over the depth (over a part of it when SPLIT).
//
//   X              'f32' 'f16' 'bf16'
//   WEIGHT         as in weight_four.wgsl; IN_OUT 1: w is [depth, columns], of a plain type
//   GATE           1: x is silu(g) * u, made while it is loaded (f32)
//   X_WIDTH        4: x (g and u) are addressed in fours of values, and so are first and stride
//   W_WIDTH        4: the same of w, of a plain type; else bytes, or values when IN_OUT
//   Y_WIDTH        4: the same of y, bias and residual
//   WHOLE          1: the depth is whole steps (and parts), so that no load has to ask; with fours
//   BIAS RESIDUAL  1: bindings that are there
//   LIVE           1: rows from live[live_first] on are not touched
//   SPLIT          1: workgroup z makes split_depth of the depth, and y is [z, row, column]
//   TILE_ROWS TILE_COLUMNS STEP ROWS COLUMNS PATCH_ROWS PATCH_COLUMNS PIPELINE
//                  TileConfig of matmul_tile_webgpu.hpp; THREADS, BLOCKS.. and TURN follow from it
struct Params {
  n_rows: u32,
  n_columns: u32,
  depth: u32,
  n_row_tiles: u32,
  y_first: u32,
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
  u_first: u32,
  u_stride: u32,
  w_first: u32,
  w_stride: u32,
  bias_first: u32,
  residual_first: u32,
  residual_stride: u32,
  live_first: u32,
  split_depth: u32,
  split_stride: u32,
}
#if Y_WIDTH == 4
alias Output = vec4<f32>;
#else
alias Output = f32;
#endif
@group(0) @binding(0) var<storage, read_write> y: array<Output>;
#if X_WIDTH == 4
#if X == 'f32'
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(1) var<storage, read> x: array<vec2<u32>>;
#endif
#else
@group(0) @binding(1) var<storage, read> x: array<u32>;
#endif
#if GATE
#if X_WIDTH == 4
@group(0) @binding(2) var<storage, read> x_up: array<vec4<f32>>;
#else
@group(0) @binding(2) var<storage, read> x_up: array<u32>;
#endif
#endif
#if W_WIDTH == 4
#if WEIGHT == 'f32'
@group(0) @binding(${2 + GATE}) var<storage, read> weights: array<vec4<f32>>;
#else
@group(0) @binding(${2 + GATE}) var<storage, read> weights: array<vec2<u32>>;
#endif
#else
@group(0) @binding(${2 + GATE}) var<storage, read> weights: array<u32>;
#endif
#if BIAS
@group(0) @binding(${3 + GATE}) var<storage, read> bias: array<Output>;
#endif
#if RESIDUAL
@group(0) @binding(${3 + GATE + BIAS}) var<storage, read> residual: array<Output>;
#endif
#if LIVE
@group(0) @binding(${3 + GATE + BIAS + RESIDUAL}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + GATE + BIAS + RESIDUAL + LIVE}) var<uniform> params: Params;

#if GATE
#if X_WIDTH == 4
alias Value = vec4<f32>;
alias Int = vec4<i32>;
alias Bits = vec4<u32>;
#else
alias Value = f32;
alias Int = i32;
alias Bits = u32;
#endif
#include 'ops/elementwise/silu_value.wgsl'
#endif
#if W_WIDTH == 1 && !IN_OUT
#include 'ops/quantize/weight_four.wgsl'
#endif

// Fours of halves, and single values of an array of words.
fn f16_four(halves: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(halves.x), unpack2x16float(halves.y));
}
fn bf16_four(halves: vec2<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(halves.x << 16u, halves.x & 0xffff0000u, halves.y << 16u,
                                      halves.y & 0xffff0000u));
}
fn f16_in(word: u32, i: u32) -> f32 {
  return unpack2x16float(word >> (16u * (i & 1u))).x;
}
fn bf16_in(word: u32, i: u32) -> f32 {
  return bitcast<f32>((word >> (16u * (i & 1u))) << 16u);
}

// Values 4 i to 4 i + 3 of a row of x; zeros behind its end (anything, if WHOLE: only the step behind
// the last one is loaded there, and not used).
fn x_four(row: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>(0.0);
  let at = params.x_first + row * params.x_stride;
#if X_WIDTH == 4
#if WHOLE
  let inside = min(i, params.depth / 4u - 1u);
  {
#else
  let inside = i;
  if (4u * i < params.depth) {
#endif
#if X == 'f32'
    four = x[at + inside];
#else
    four = ${X}_four(x[at + inside]);
#endif
#if GATE
    four = silu(four) * x_up[params.u_first + row * params.u_stride + inside];
#endif
  }
#else
#for k in 0..4
  if (4u * i + ${k}u < params.depth) {
    let j = at + 4u * i + ${k}u;
#if X == 'f32'
    four[${k}] = bitcast<f32>(x[j]);
#else
    four[${k}] = ${X}_in(x[j / 2u], j);
#endif
#if GATE
    let u = bitcast<f32>(x_up[params.u_first + row * params.u_stride + 4u * i + ${k}u]);
    four[${k}] = silu(four[${k}]) * u;
#endif
  }
#endfor
#endif
  return four;
}

#if IN_OUT
// Values 4 i to 4 i + 3 of row k of w; zeros behind the last row, anything behind the last column.
fn w_four(k: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>(0.0);
#if WHOLE
  {
    let at = params.w_first + min(k, params.depth - 1u) * params.w_stride;
#else
  if (k < params.depth) {
    let at = params.w_first + k * params.w_stride;
#endif
#if W_WIDTH == 4
    let j = at + min(i, params.n_columns / 4u - 1u);
#if WEIGHT == 'f32'
    four = weights[j];
#else
    four = ${WEIGHT}_four(weights[j]);
#endif
#else
#for c in 0..4
    let j${c} = at + min(4u * i + ${c}u, params.n_columns - 1u);
#if WEIGHT == 'f32'
    four[${c}] = bitcast<f32>(weights[j${c}]);
#else
    four[${c}] = ${WEIGHT}_in(weights[j${c} / 2u], j${c});
#endif
#endfor
#endif
  }
  return four;
}
#else
// Values 4 i to 4 i + 3 of row `row` of w; behind its end as x_four.
fn w_four(row: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>(0.0);
#if WHOLE
  let inside = min(i, params.depth / 4u - 1u);
  {
#else
  let inside = i;
  if (4u * i < params.depth) {
#endif
    let at = params.w_first + row * params.w_stride;
#if W_WIDTH == 4
#if WEIGHT == 'f32'
    four = weights[at + inside];
#else
    four = ${WEIGHT}_four(weights[at + inside]);
#endif
#else
    four = weight_four(at, inside, params.depth);
#endif
  }
  return four;
}
#endif

// Steps of the depth, each the tile's rows of x (columns of w) in fours. The four of rows 4 m to
// 4 m + 3 at step k lies at place m ^ turn(k / 4) of its step: without the turn, threads that load
// steps 4 apart would write to the same bank.
var<workgroup> x_tile: array<vec4<f32>, ${(1 + (PIPELINE == 2)) * STEP * TILE_ROWS / 4}>;
var<workgroup> w_tile: array<vec4<f32>, ${(1 + (PIPELINE == 2)) * STEP * TILE_COLUMNS / 4}>;
fn turn(k_four: u32) -> u32 {
  return (k_four * ${TURN}u) & 7u;
}

// What is loaded in a step: blocks of 4 x 4 values, block i by thread i % THREADS; first those of x,
// neighbours along the depth, then those of w.
#for i in 0..BLOCKS_PER_THREAD
fn load${i}(thread: u32, row_begin: u32, n_rows: u32, column_begin: u32,
            begin: u32) -> mat4x4<f32> {
  let block = thread + ${i * THREADS}u;
#if i * THREADS < X_BLOCKS
#if (i + 1) * THREADS > X_BLOCKS
  if (block < ${X_BLOCKS}u) {
#else
  {
#endif
    let row = row_begin + block / ${STEP / 4}u * 4u;
    let k_four = begin / 4u + block % ${STEP / 4}u;
    return transpose(mat4x4<f32>(x_four(min(row, n_rows - 1u), k_four),
                                 x_four(min(row + 1u, n_rows - 1u), k_four),
                                 x_four(min(row + 2u, n_rows - 1u), k_four),
                                 x_four(min(row + 3u, n_rows - 1u), k_four)));
  }
#endif
#if (i + 1) * THREADS > X_BLOCKS
  let w_block = block - ${X_BLOCKS}u;
#if IN_OUT
  let k = begin + w_block / ${TILE_COLUMNS / 4}u * 4u;
  let column_four = column_begin / 4u + w_block % ${TILE_COLUMNS / 4}u;
  return mat4x4<f32>(w_four(k, column_four), w_four(k + 1u, column_four),
                     w_four(k + 2u, column_four), w_four(k + 3u, column_four));
#else
  let column = column_begin + w_block / ${STEP / 4}u * 4u;
  let k_four = begin / 4u + w_block % ${STEP / 4}u;
  let last = params.n_columns - 1u;
  return transpose(mat4x4<f32>(w_four(min(column, last), k_four),
                               w_four(min(column + 1u, last), k_four),
                               w_four(min(column + 2u, last), k_four),
                               w_four(min(column + 3u, last), k_four)));
#endif
#endif
}
// `side`: which of two buffers.
fn store${i}(thread: u32, side: u32, values: mat4x4<f32>) {
  let block = thread + ${i * THREADS}u;
#if i * THREADS < X_BLOCKS
#if (i + 1) * THREADS > X_BLOCKS
  if (block < ${X_BLOCKS}u) {
#else
  {
#endif
    let k_four = block % ${STEP / 4}u;
    let at = side * ${STEP * TILE_ROWS / 4}u + k_four * ${TILE_ROWS}u +
             (block / ${STEP / 4}u ^ turn(k_four));
#for k in 0..4
    x_tile[at + ${k * TILE_ROWS / 4}u] = values[${k}];
#endfor
    return;
  }
#endif
#if (i + 1) * THREADS > X_BLOCKS
#if (i + 1) * THREADS > X_BLOCKS + W_BLOCKS
  if (block >= ${X_BLOCKS + W_BLOCKS}u) {
    return;
  }
#endif
  let w_block = block - ${X_BLOCKS}u;
#if IN_OUT
  let k_four = w_block / ${TILE_COLUMNS / 4}u;
  let column_four = w_block % ${TILE_COLUMNS / 4}u;
#else
  let k_four = w_block % ${STEP / 4}u;
  let column_four = w_block / ${STEP / 4}u;
#endif
  let at = side * ${STEP * TILE_COLUMNS / 4}u + k_four * ${TILE_COLUMNS}u +
           (column_four ^ turn(k_four));
#for k in 0..4
  w_tile[at + ${k * TILE_COLUMNS / 4}u] = values[${k}];
#endfor
#endif
}
#endfor

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  // Neighbouring workgroups share columns of w, which is the larger matrix.
  let tile = group.y * n_groups.x + group.x;
  let row_begin = tile % params.n_row_tiles * ${TILE_ROWS}u;
  let column_begin = tile / params.n_row_tiles * ${TILE_COLUMNS}u;
  if (row_begin >= n_rows || column_begin >= params.n_columns) {  // the whole workgroup
    return;
  }
#if SPLIT
  let depth_begin = group.z * params.split_depth;
  let depth_end = min(params.depth, depth_begin + params.split_depth);
#else
  let depth_begin = 0u;
  let depth_end = params.depth;
#endif
  // Threads are laid out in patches of PATCH_ROWS x PATCH_COLUMNS; the fours of a thread lie a patch
  // apart, so that the threads of a patch read neighbouring ones. (four + a patch) ^ turn is written as
  // (four ^ turn) + a constant, which costs no instruction: a patch is eight fours long, or four.
  let patch_thread = thread % ${PATCH_ROWS * PATCH_COLUMNS}u;
  let i_patch = thread / ${PATCH_ROWS * PATCH_COLUMNS}u;
  let row_four = i_patch / ${TILE_COLUMNS / COLUMNS / PATCH_COLUMNS}u * ${PATCH_ROWS * ROWS / 4}u +
                 patch_thread / ${PATCH_COLUMNS}u;
  let column_four =
      i_patch % ${TILE_COLUMNS / COLUMNS / PATCH_COLUMNS}u * ${PATCH_COLUMNS * COLUMNS / 4}u +
      patch_thread % ${PATCH_COLUMNS}u;

#for r in 0..ROWS
#for c in 0..COLUMNS / 4
  var sum${r}_${c} = vec4<f32>(0.0);
#endfor
#endfor
#if PIPELINE > 0
#for i in 0..BLOCKS_PER_THREAD
  var block${i} = load${i}(thread, row_begin, n_rows, column_begin, depth_begin);
#endfor
#endif
#if PIPELINE == 2
#for i in 0..BLOCKS_PER_THREAD
  store${i}(thread, 0u, block${i});
#endfor
  workgroupBarrier();
#endif
  // Two steps at a time where there are two buffers, so that all addresses in them are constants.
  for (var begin = depth_begin; begin < depth_end; begin += ${(1 + (PIPELINE == 2)) * STEP}u) {
#for side in 0..1 + (PIPELINE == 2)
#if side == 1
    if (begin + ${STEP}u >= depth_end) {  // the whole workgroup
      break;
    }
#endif
#if PIPELINE == 0
#for i in 0..BLOCKS_PER_THREAD
    store${i}(thread, 0u, load${i}(thread, row_begin, n_rows, column_begin, begin));
#endfor
    workgroupBarrier();
#endif
#if PIPELINE == 1
#for i in 0..BLOCKS_PER_THREAD
    store${i}(thread, 0u, block${i});
#endfor
    workgroupBarrier();
#endif
#if PIPELINE > 0
#for i in 0..BLOCKS_PER_THREAD
    block${i} = load${i}(thread, row_begin, n_rows, column_begin, begin + ${(side + 1) * STEP}u);
#endfor
#endif
#for k in 0..STEP
    {
      const x_step = ${(side * STEP + k) * TILE_ROWS / 4}u;
      const w_step = ${(side * STEP + k) * TILE_COLUMNS / 4}u;
#for c in 0..COLUMNS / 4
#if PATCH_COLUMNS % 8 == 0 || COLUMNS == 4
      let w${c} = w_tile[w_step + ${c * PATCH_COLUMNS}u + (column_four ^ ${k / 4 * TURN % 8}u)];
#else
      let w${c} = w_tile[w_step + ${4 * (c + k / 4 * TURN % 8 / 4 * (1 - c % 2 * 2))}u +
                         (column_four ^ ${k / 4 * TURN % 4}u)];
#endif
#endfor
#for g in 0..ROWS / 4
#if PATCH_ROWS % 8 == 0 || ROWS == 4
      let x${g} = x_tile[x_step + ${g * PATCH_ROWS}u + (row_four ^ ${k / 4 * TURN % 8}u)];
#else
      let x${g} = x_tile[x_step + ${4 * (g + k / 4 * TURN % 8 / 4 * (1 - g % 2 * 2))}u +
                         (row_four ^ ${k / 4 * TURN % 4}u)];
#endif
#for j in 0..4
#for c in 0..COLUMNS / 4
      sum${4 * g + j}_${c} = fma(vec4<f32>(x${g}[${j}]), w${c}, sum${4 * g + j}_${c});
#endfor
#endfor
#endfor
    }
#endfor
#if PIPELINE == 2
#for i in 0..BLOCKS_PER_THREAD
    store${i}(thread, ${1 - side}u, block${i});
#endfor
#endif
    workgroupBarrier();
#endfor
  }

#for r in 0..ROWS
  {
    let row = row_begin + 4u * (row_four + ${r / 4 * PATCH_ROWS}u) + ${r % 4}u;
    if (row < n_rows) {
#for c in 0..COLUMNS / 4
      write_four(row, column_begin + 4u * (column_four + ${c * PATCH_COLUMNS}u), group.z,
                 sum${r}_${c});
#endfor
    }
  }
#endfor
}

// Columns `column` to `column` + 3 of a row of y.
fn write_four(row: u32, column: u32, split: u32, sums: vec4<f32>) {
#if SPLIT
  let at = params.y_first + split * params.split_stride + row * params.y_stride;
#else
  let at = params.y_first + row * params.y_stride;
#endif
#if Y_WIDTH == 4
  if (column < params.n_columns) {
    var value = sums;
#if BIAS
    value += bias[params.bias_first + column / 4u];
#endif
#if RESIDUAL
    value += residual[params.residual_first + row * params.residual_stride + column / 4u];
#endif
    y[at + column / 4u] = value;
  }
#else
#for c in 0..4
  if (column + ${c}u < params.n_columns) {
    var value = sums[${c}];
#if BIAS
    value += bias[params.bias_first + column + ${c}u];
#endif
#if RESIDUAL
    value += residual[params.residual_first + row * params.residual_stride + column + ${c}u];
#endif
    y[at + column + ${c}u] = value;
  }
#endfor
#endif
}
