// y[i] = table[ids[i]], decoded to f32; zeros for ids outside the table. One thread makes four values.
//   WEIGHT   as in weight_four.wgsl
//   LIVE     1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  n_table_rows: u32,
  ids_first: u32,
  y_first: u32,
  y_stride: u32,
  table_first_byte: u32,
  table_row_bytes: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
#if LIVE
@group(0) @binding(3) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + LIVE}) var<uniform> params: Params;

#include 'ops/quantize/weight_four.wgsl'

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let n_fours = (params.n_columns + 3u) / 4u;
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let row = i / n_fours;
  let four = i % n_fours;
  if (row >= n_rows) {
    return;
  }
  let id = ids[params.ids_first + row];
  var values = vec4<f32>(0.0);
  if (id < params.n_table_rows) {
    values = weight_four(params.table_first_byte + id * params.table_row_bytes, four,
                         params.n_columns);
  }
  let at = params.y_first + row * params.y_stride + 4u * four;
#for k in 0..4
  if (4u * four + ${k}u < params.n_columns) {
    y[at + ${k}u] = values[${k}];
  }
#endfor
}
