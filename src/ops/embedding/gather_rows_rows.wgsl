// y[i] = table[ids[i]], decoded to f32; zeros for ids outside the table. One thread makes FOURS groups of
// four values, 256 groups apart, with all of their loads under way at once.
// A table that no binding covers is looked up part by part: a dispatch makes the rows whose ids lie in
// its part, and the first one the zeros.
//   WEIGHT   as in weight_four.wgsl
//   WIDE     1: y is written in vec4s, and a table of f32 read in them: firsts and strides of y, and
//            table_first_byte and table_row_bytes of f32, count vec4s; else 0
//   FOURS    1, 2, ...
//   LIVE     1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_columns: u32,
  n_table_rows: u32,
  part_begin: u32,  // the rows of the table that this dispatch sees
  part_rows: u32,
  ids_first: u32,
  y_first: u32,
  y_stride: u32,
  table_first_byte: u32,
  table_row_bytes: u32,
  live_first: u32,
}
#if WIDE
@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
#else
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
#endif
#if WIDE && WEIGHT == 'f32'
@group(0) @binding(1) var<storage, read> table: array<vec4<f32>>;
#else
@group(0) @binding(1) var<storage, read> weights: array<u32>;
#endif
@group(0) @binding(2) var<storage, read> ids: array<u32>;
#if LIVE
@group(0) @binding(3) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${3 + LIVE}) var<uniform> params: Params;

#if WIDE && WEIGHT == 'f32'
fn table_four(row: u32, four: u32) -> vec4<f32> {
  return table[params.table_first_byte + row * params.table_row_bytes + four];
}
#else
#include 'ops/quantize/weight_four.wgsl'
fn table_four(row: u32, four: u32) -> vec4<f32> {
  return weight_four(params.table_first_byte + row * params.table_row_bytes, four,
                     params.n_columns);
}
#endif

struct Found {
  values: vec4<f32>,
  mine: bool,  // to be written by this dispatch
}

fn look_up(row: u32, four: u32, n_rows: u32) -> Found {
  if (row >= n_rows) {
    return Found(vec4<f32>(0.0), false);
  }
  let id = ids[params.ids_first + row];
  if (id >= params.part_begin && id - params.part_begin < params.part_rows) {
    return Found(table_four(id - params.part_begin, four), true);
  }
  // Another part's, or nobody's: the first one writes its zeros.
  return Found(vec4<f32>(0.0), id >= params.n_table_rows && params.part_begin == 0u);
}

fn store_four(row: u32, four: u32, values: vec4<f32>) {
#if WIDE
  y[params.y_first + row * params.y_stride + four] = values;
#else
  let at = params.y_first + row * params.y_stride + 4u * four;
#for k in 0..4
  if (4u * four + ${k}u < params.n_columns) {
    y[at + ${k}u] = values[${k}];
  }
#endfor
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let n_fours = (params.n_columns + 3u) / 4u;
  let first = (group.y * n_groups.x + group.x) * ${256 * FOURS}u + thread;
#for j in 0..FOURS
  let row${j} = (first + ${256 * j}u) / n_fours;
  let four${j} = (first + ${256 * j}u) - row${j} * n_fours;
  let found${j} = look_up(row${j}, four${j}, n_rows);
#endfor
#for j in 0..FOURS
  if (found${j}.mine) {
    store_four(row${j}, four${j}, found${j}.values);
  }
#endfor
}
