// y = x w^T (+ bias) (+ residual) for many rows. A workgroup makes a tile of 64 rows and 64 columns, a
// thread 4 x 4 values of it; weights are decoded once for the 64 rows. Every value is one chain of
// sums over the depth.
//   WEIGHT             as in weight_four.wgsl
//   WIDTH              4: x is addressed as vec4s, and x_first and x_stride count them; else 1
//   BIAS RESIDUAL      1: bindings that are there
//   LIVE               1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  depth: u32,
  n_column_tiles: u32,
  y_first: u32,
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
  w_first_byte: u32,
  w_row_bytes: u32,
  bias_first: u32,
  residual_first: u32,
  residual_stride: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
#if WIDTH == 4
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(1) var<storage, read> x: array<f32>;
#endif
@group(0) @binding(2) var<storage, read> weights: array<u32>;
#if BIAS
@group(0) @binding(3) var<storage, read> bias: array<f32>;
#endif
#if RESIDUAL
@group(0) @binding(${3 + BIAS}) var<storage, read> residual: array<f32>;
#endif
#if LIVE
@group(0) @binding(${3 + BIAS + RESIDUAL}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + BIAS + RESIDUAL + LIVE}) var<uniform> params: Params;

#include 'ops/quantize/weight_four.wgsl'

// 16 steps of the depth, each with 64 rows of x and 64 of w.
var<workgroup> x_tile: array<f32, 1024>;
var<workgroup> w_tile: array<f32, 1024>;

fn x_four(row: u32, i: u32) -> vec4<f32> {
  var result = vec4<f32>(0.0);
#if WIDTH == 4
  if (4u * i < params.depth) {
    result = x[params.x_first + row * params.x_stride + i];
  }
#else
#for k in 0..4
  if (4u * i + ${k}u < params.depth) {
    result[${k}] = x[params.x_first + row * params.x_stride + 4u * i + ${k}u];
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
  // What this thread loads: four steps of one row of x and of one row of w.
  let load_row = thread / 4u;
  let load_four = thread % 4u;
  let x_row = row_begin + load_row;
  let w_row = column_begin + load_row;
  let w_byte = params.w_first_byte + w_row * params.w_row_bytes;
  // What it makes.
  let tile_row = thread / 16u * 4u;
  let tile_column = thread % 16u * 4u;
#for r in 0..4
  var sum${r} = vec4<f32>(0.0);
#endfor
  for (var begin = 0u; begin < params.depth; begin += 16u) {
    var x_values = vec4<f32>(0.0);
    var w_values = vec4<f32>(0.0);
    let i = begin / 4u + load_four;
    if (x_row < n_rows) {
      x_values = x_four(x_row, i);
    }
    if (w_row < params.n_columns && 4u * i < params.depth) {
      w_values = weight_four(w_byte, i, params.depth);
    }
#for k in 0..4
    x_tile[(4u * load_four + ${k}u) * 64u + load_row] = x_values[${k}];
    w_tile[(4u * load_four + ${k}u) * 64u + load_row] = w_values[${k}];
#endfor
    workgroupBarrier();
#for k in 0..16
    {
      let w = vec4<f32>(w_tile[${64 * k}u + tile_column], w_tile[${64 * k + 1}u + tile_column],
                        w_tile[${64 * k + 2}u + tile_column], w_tile[${64 * k + 3}u + tile_column]);
#for r in 0..4
      sum${r} += x_tile[${64 * k + r}u + tile_row] * w;
#endfor
    }
#endfor
    workgroupBarrier();
  }
#for r in 0..4
  if (row_begin + tile_row + ${r}u < n_rows) {
    let row = row_begin + tile_row + ${r}u;
#for c in 0..4
    if (column_begin + tile_column + ${c}u < params.n_columns) {
      let column = column_begin + tile_column + ${c}u;
      var value = sum${r}[${c}];
#if BIAS
      value += bias[params.bias_first + column];
#endif
#if RESIDUAL
      value += residual[params.residual_first + row * params.residual_stride + column];
#endif
      y[params.y_first + row * params.y_stride + column] = value;
    }
#endfor
  }
#endfor
}
