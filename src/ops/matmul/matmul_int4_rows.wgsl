// y = x dequant(w) with flat int4 weights [depth, columns]. A workgroup makes 64 columns of up to 64 rows.
//   FEW    1: of up to four rows, with N and group_size multiples of 8: eight columns a thread, the depth
//          over 32 threads, whose sums are added at the end. 0: a thread makes 4 x 4 values, each one
//          chain of sums; weights are decoded once for the 64 rows
//   QUADS  1: four neighbouring columns lie in one word and one group
//   LIVE   1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  depth: u32,
  group_size: u32,
  n_column_tiles: u32,
  y_first: u32,
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
  w_first: u32,  // in words
  scales_first: u32,
  zeros_first: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;
@group(0) @binding(4) var<storage, read> zeros: array<f32>;
#if LIVE
@group(0) @binding(5) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${5 + LIVE}) var<uniform> params: Params;

// A shift where it can be: the division is a long sequence on most GPUs.
fn group_of(flat: u32) -> u32 {
  if ((params.group_size & (params.group_size - 1u)) == 0u) {
    return flat >> firstTrailingBit(params.group_size);
  }
  return flat / params.group_size;
}

#if FEW
// [32 threads of the depth][32 columns], rows of x along each vec4.
var<workgroup> sums: array<vec4<f32>, 1024>;

// Step k of all rows; rows behind the last one repeat it.
fn column_of_x(k: u32) -> vec4<f32> {
  let last = params.n_rows - 1u;
  let first = params.x_first + k;
  return vec4<f32>(x[first], x[first + min(1u, last) * params.x_stride],
                   x[first + min(2u, last) * params.x_stride],
                   x[first + min(3u, last) * params.x_stride]);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let tile = group.y * n_groups.x + group.x;
  if (tile >= params.n_column_tiles || n_rows == 0u) {  // the whole workgroup
    return;
  }
  let word = thread % 8u;
  let lane = thread / 8u;
  let column = min(64u * tile + 8u * word, params.n_columns - 8u);
#for c in 0..8
  var sum${c} = vec4<f32>(0.0);
#endfor
  for (var k = lane; k < params.depth; k += 32u) {
    let flat = k * params.n_columns + column;
    let in_group = group_of(flat);
    let bits = vec4<u32>(w[params.w_first + flat / 8u]);
    let zero = zeros[params.zeros_first + in_group];
    let a = column_of_x(k) * scales[params.scales_first + in_group];
    let low = vec4<f32>((bits >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u)) - zero;
    let high = vec4<f32>((bits >> vec4<u32>(16u, 20u, 24u, 28u)) & vec4<u32>(15u)) - zero;
#for c in 0..4
    sum${c} = fma(a, vec4<f32>(low[${c}]), sum${c});
    sum${c + 4} = fma(a, vec4<f32>(high[${c}]), sum${c + 4});
#endfor
  }
#for half in 0..2
#for c in 0..4
  sums[32u * lane + 4u * word + ${c}u] = sum${4 * half + c};
#endfor
  workgroupBarrier();
  if (thread < 32u) {
    var total = vec4<f32>(0.0);
    for (var i = thread; i < 1024u; i += 32u) {
      total += sums[i];
    }
    let c = 64u * tile + 8u * (thread / 4u) + ${4 * half}u + thread % 4u;
    if (c < params.n_columns) {
      for (var row = 0u; row < n_rows; row++) {
        y[params.y_first + row * params.y_stride + c] = total[row];
      }
    }
  }
  workgroupBarrier();
#endfor
}
#else
// 16 steps of the depth, each with 64 rows of x and 64 columns of w.
var<workgroup> x_tile: array<f32, 1024>;
var<workgroup> w_tile: array<vec4<f32>, 256>;

fn value_at(flat: u32) -> f32 {
  let in_group = group_of(flat);
  let nibble = (w[params.w_first + flat / 8u] >> (4u * (flat % 8u))) & 15u;
  return (f32(nibble) - zeros[params.zeros_first + in_group]) *
         scales[params.scales_first + in_group];
}

// Columns `column` to `column + 3` of step k; zeros behind the last one.
fn w_four(k: u32, column: u32) -> vec4<f32> {
  var result = vec4<f32>(0.0);
  let flat = k * params.n_columns + column;
#if QUADS
  if (column < params.n_columns) {
    let bits = vec4<u32>(w[params.w_first + flat / 8u] >> (4u * (flat & 4u)));
    let in_group = group_of(flat);
    result = (vec4<f32>((bits >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u)) -
              zeros[params.zeros_first + in_group]) *
             scales[params.scales_first + in_group];
  }
#else
#for c in 0..4
  if (column + ${c}u < params.n_columns) {
    result[${c}] = value_at(flat + ${c}u);
  }
#endfor
#endif
  return result;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let tile = group.y * n_groups.x + group.x;
  let row_begin = tile / params.n_column_tiles * 64u;
  let column_begin = tile % params.n_column_tiles * 64u;
  if (row_begin >= n_rows) {  // the whole workgroup
    return;
  }
  // What this thread loads: four steps of a row of x, four columns of a step of w.
  let x_row = row_begin + thread / 4u;
  let x_step = thread % 4u * 4u;
  let w_step = thread / 16u;
  // What it makes.
  let tile_row = thread / 16u * 4u;
  let tile_four = thread % 16u;
  let column = column_begin + 4u * tile_four;
#for r in 0..4
  var sum${r} = vec4<f32>(0.0);
#endfor
  for (var begin = 0u; begin < params.depth; begin += 16u) {
#for k in 0..4
    var x_value${k} = 0.0;
    if (x_row < n_rows && begin + x_step + ${k}u < params.depth) {
      x_value${k} = x[params.x_first + x_row * params.x_stride + begin + x_step + ${k}u];
    }
    x_tile[(x_step + ${k}u) * 64u + thread / 4u] = x_value${k};
#endfor
    var w_values = vec4<f32>(0.0);
    if (begin + w_step < params.depth) {
      w_values = w_four(begin + w_step, column);
    }
    w_tile[thread] = w_values;
    workgroupBarrier();
#for k in 0..16
    {
      let w_row = w_tile[${16 * k}u + tile_four];
#for r in 0..4
      sum${r} = fma(vec4<f32>(x_tile[${64 * k + r}u + tile_row]), w_row, sum${r});
#endfor
    }
#endfor
    workgroupBarrier();
  }
#for r in 0..4
  if (row_begin + tile_row + ${r}u < n_rows) {
    let at = params.y_first + (row_begin + tile_row + ${r}u) * params.y_stride + column;
#for c in 0..4
    if (column + ${c}u < params.n_columns) {
      y[at + ${c}u] = sum${r}[${c}];
    }
#endfor
  }
#endfor
}
#endif
