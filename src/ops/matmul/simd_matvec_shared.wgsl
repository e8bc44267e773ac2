// y[r] = sum_c W[r, c] x[c]: simd_matvec.wgsl for devices without subgroups.
//
// Bindings: W f32[rows, cols] r, x f32[cols] r, y f32[rows] rw, params { rows, cols } (8 bytes).
// Grid: ceil(rows / 4), 128 threads. Where that exceeds 65,535, dispatch any (x, y, z) whose
// product is at least as large.
//
// A workgroup has four rows, 32 threads a row; the threads' parts are added in workgroup memory.

struct Params {
  rows: u32,
  cols: u32,
}

@group(0) @binding(0) var<storage, read> W: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> partial: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let first_row = 4u * ((group.z * groups.y + group.y) * groups.x + group.x);
  let row_begin = min(first_row + thread / 32u, params.rows - 1u) * params.cols;
  var sum = vec4<f32>(0.0);
  var c = thread % 32u;
  for (; c + 96u < params.cols; c += 128u) {
    let at = row_begin + c;
    sum = fma(vec4<f32>(W[at], W[at + 32u], W[at + 64u], W[at + 96u]),
              vec4<f32>(x[c], x[c + 32u], x[c + 64u], x[c + 96u]), sum);
  }
  for (; c < params.cols; c += 32u) {
    sum.x = fma(W[row_begin + c], x[c], sum.x);
  }
  partial[thread] = (sum.x + sum.y) + (sum.z + sum.w);
  workgroupBarrier();
  if (thread % 32u < 8u) {
    partial[thread] = (partial[thread] + partial[thread + 8u]) +
                      (partial[thread + 16u] + partial[thread + 24u]);
  }
  workgroupBarrier();
  if (thread < 4u && first_row + thread < params.rows) {
    let at = 32u * thread;
    y[first_row + thread] =
        ((partial[at] + partial[at + 1u]) + (partial[at + 2u] + partial[at + 3u])) +
        ((partial[at + 4u] + partial[at + 5u]) + (partial[at + 6u] + partial[at + 7u]));
  }
}
