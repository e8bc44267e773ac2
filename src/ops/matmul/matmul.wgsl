// C[M, N] = A[M, K] B[K, N], row-major.
//
// Bindings: A f32[M, K] r, B f32[K, N] r, C f32[M, N] rw, params { M, K, N } (12 bytes).
// Grid: (ceil(N / 16), ceil(M / 16)), 16x16 threads. Where one of them exceeds 65,535, dispatch any
// (x, y, z) whose product is at least as large as theirs.
//
// How much of C a workgroup makes follows the shape; with larger blocks the first groups of the
// grid make all of C, and those left over do nothing.
//   M <= 4       16 columns: the columns' terms are split over the 16 rows of threads
//   small C      16x16, one output a thread, 64 terms a step
//   otherwise    64x64, 4x4 outputs a thread, 32 terms a step; the next step's operands wait in
//                registers while this step's are multiplied
// Workgroup memory: 16,384 bytes. Loads never leave the matrices: where a block hangs over an edge,
// the last row or column is read again; the terms beyond K are zeros.

struct Params {
  M: u32,
  K: u32,
  N: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

// 64x64: A as [row][8], then B as [k][16]. 16x16: A as [row][17 of 16], then B as [16][column].
var<workgroup> tile: array<vec4<f32>, 1024>;

// Four terms of a row of A, k and every stride-th after it: neighbouring threads load neighbours.
fn load_a(row: u32, k: u32, stride: u32) -> vec4<f32> {
  let begin = min(row, params.M - 1u) * params.K;
  let last = params.K - 1u;
  let at = vec4<u32>(k, k + stride, k + 2u * stride, k + 3u * stride);
  let safe = begin + min(at, vec4<u32>(last));
  return select(vec4<f32>(0.0), vec4<f32>(A[safe.x], A[safe.y], A[safe.z], A[safe.w]),
                at <= vec4<u32>(last));
}

// B[k, ...] at a column and every 16th after it.
fn load_b(k: u32, column: u32) -> vec4<f32> {
  let begin = min(k, params.K - 1u) * params.N;
  let at = vec4<u32>(column, column + 16u, column + 32u, column + 48u);
  let safe = begin + min(at, vec4<u32>(params.N - 1u));
  return vec4<f32>(B[safe.x], B[safe.y], B[safe.z], B[safe.w]);
}

// Four terms of a column of B, as load_a's.
fn load_b_down(k: u32, column: u32) -> vec4<f32> {
  let at = min(vec4<u32>(k, k + 16u, k + 32u, k + 48u), vec4<u32>(params.K - 1u));
  let safe = at * params.N + min(column, params.N - 1u);
  return vec4<f32>(B[safe.x], B[safe.y], B[safe.z], B[safe.w]);
}

// Four rows of four outputs.
struct Block {
  r0: vec4<f32>,
  r1: vec4<f32>,
  r2: vec4<f32>,
  r3: vec4<f32>,
}

fn add_term(sum: Block, a: vec4<f32>, b: vec4<f32>) -> Block {
  return Block(fma(vec4<f32>(a.x), b, sum.r0), fma(vec4<f32>(a.y), b, sum.r1),
               fma(vec4<f32>(a.z), b, sum.r2), fma(vec4<f32>(a.w), b, sum.r3));
}

// Four terms, q, q + 8, q + 16 and q + 24 of the step.
fn add_four(sum: Block, q: u32, tx: u32, ty: u32) -> Block {
  let a0 = tile[32u * ty + q];
  let a1 = tile[32u * ty + 8u + q];
  let a2 = tile[32u * ty + 16u + q];
  let a3 = tile[32u * ty + 24u + q];
  let b = 512u + 16u * q + tx;
  var s = add_term(sum, vec4<f32>(a0.x, a1.x, a2.x, a3.x), tile[b]);
  s = add_term(s, vec4<f32>(a0.y, a1.y, a2.y, a3.y), tile[b + 128u]);
  s = add_term(s, vec4<f32>(a0.z, a1.z, a2.z, a3.z), tile[b + 256u]);
  return add_term(s, vec4<f32>(a0.w, a1.w, a2.w, a3.w), tile[b + 384u]);
}

fn store4(row: u32, column: u32, y: vec4<f32>) {
  if (row < params.M) {
    for (var n = 0u; n < 4u; n++) {
      if (column + 16u * n < params.N) {
        C[row * params.N + column + 16u * n] = y[n];
      }
    }
  }
}

fn block_64x64(row: u32, column: u32, tx: u32, ty: u32) {
  let thread = 16u * ty + tx;
  // Two vec4 of each operand a thread.
  let a_row = row + thread / 8u;
  let a_k = thread % 8u;
  let b_column = column + tx;
  var a0 = load_a(a_row, a_k, 8u);
  var a1 = load_a(a_row + 32u, a_k, 8u);
  var b0 = load_b(ty, b_column);
  var b1 = load_b(ty + 16u, b_column);
  var sum = Block(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
  for (var k = 0u; k < params.K; k += 32u) {
    workgroupBarrier();  // the step before is done with the tile
    tile[thread] = a0;
    tile[256u + thread] = a1;
    tile[512u + thread] = b0;
    tile[768u + thread] = b1;
    workgroupBarrier();
    if (k + 32u < params.K) {
      a0 = load_a(a_row, a_k + k + 32u, 8u);
      a1 = load_a(a_row + 32u, a_k + k + 32u, 8u);
      b0 = load_b(ty + k + 32u, b_column);
      b1 = load_b(ty + k + 48u, b_column);
    }
    sum = add_four(sum, 0u, tx, ty);
    sum = add_four(sum, 1u, tx, ty);
    sum = add_four(sum, 2u, tx, ty);
    sum = add_four(sum, 3u, tx, ty);
    sum = add_four(sum, 4u, tx, ty);
    sum = add_four(sum, 5u, tx, ty);
    sum = add_four(sum, 6u, tx, ty);
    sum = add_four(sum, 7u, tx, ty);
  }
  let c_row = row + 4u * ty;
  store4(c_row, b_column, sum.r0);
  store4(c_row + 1u, b_column, sum.r1);
  store4(c_row + 2u, b_column, sum.r2);
  store4(c_row + 3u, b_column, sum.r3);
}

fn block_16x16(row: u32, column: u32, tx: u32, ty: u32) {
  var sum = vec4<f32>(0.0);
  for (var k = 0u; k < params.K; k += 64u) {
    workgroupBarrier();  // the step before is done with the tile
    tile[17u * ty + tx] = load_a(row + ty, k + tx, 16u);
    tile[512u + 16u * ty + tx] = load_b_down(k + ty, column + tx);
    workgroupBarrier();
    for (var q = 0u; q < 16u; q++) {
      sum = fma(tile[17u * ty + q], tile[512u + 16u * q + tx], sum);
    }
  }
  if (row + ty < params.M && column + tx < params.N) {
    C[(row + ty) * params.N + column + tx] = (sum.x + sum.y) + (sum.z + sum.w);
  }
}

// Up to four rows of A against 16 columns; thread row ty takes the terms ty, ty + 16, ...
fn few_rows(column: u32, tx: u32, ty: u32) {
  let n = min(column + tx, params.N - 1u);
  let row1 = min(1u, params.M - 1u) * params.K;
  let row2 = min(2u, params.M - 1u) * params.K;
  let row3 = min(3u, params.M - 1u) * params.K;
  var even = vec4<f32>(0.0);
  var odd = vec4<f32>(0.0);
  var k = ty;
  for (; k + 48u < params.K; k += 64u) {
    let b = vec4<f32>(B[k * params.N + n], B[(k + 16u) * params.N + n],
                      B[(k + 32u) * params.N + n], B[(k + 48u) * params.N + n]);
    even = fma(vec4<f32>(A[k], A[row1 + k], A[row2 + k], A[row3 + k]), vec4<f32>(b.x), even);
    odd = fma(vec4<f32>(A[k + 16u], A[row1 + k + 16u], A[row2 + k + 16u], A[row3 + k + 16u]),
              vec4<f32>(b.y), odd);
    even = fma(vec4<f32>(A[k + 32u], A[row1 + k + 32u], A[row2 + k + 32u], A[row3 + k + 32u]),
               vec4<f32>(b.z), even);
    odd = fma(vec4<f32>(A[k + 48u], A[row1 + k + 48u], A[row2 + k + 48u], A[row3 + k + 48u]),
              vec4<f32>(b.w), odd);
  }
  for (; k < params.K; k += 16u) {
    even = fma(vec4<f32>(A[k], A[row1 + k], A[row2 + k], A[row3 + k]),
               vec4<f32>(B[k * params.N + n]), even);
  }
  let thread = 16u * ty + tx;
  tile[thread] = even + odd;
  workgroupBarrier();
  if (thread < 64u) {
    tile[thread] = (tile[thread] + tile[thread + 64u]) +
                   (tile[thread + 128u] + tile[thread + 192u]);
  }
  workgroupBarrier();
  // Sixteen columns of up to four rows: one output a thread.
  if (thread < 64u && ty < params.M && column + tx < params.N) {
    let y = (tile[tx] + tile[tx + 16u]) + (tile[tx + 32u] + tile[tx + 48u]);
    C[ty * params.N + column + tx] = y[ty];
  }
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) thread: vec3<u32>) {
  let place = (group.z * groups.y + group.y) * groups.x + group.x;
  let wide_columns = (params.N + 63u) / 64u;
  let wide_blocks = wide_columns * ((params.M + 63u) / 64u);
  let columns = (params.N + 15u) / 16u;
  if (params.M <= 4u) {
    if (place < columns) {
      few_rows(16u * place, thread.x, thread.y);
    }
  } else if (params.M > 16u && wide_blocks >= 16u) {
    if (place < wide_blocks) {
      block_64x64(64u * (place / wide_columns), 64u * (place % wide_columns), thread.x, thread.y);
    }
  } else if (place < columns * ((params.M + 15u) / 16u)) {
    block_16x16(16u * (place / columns), 16u * (place % columns), thread.x, thread.y);
  }
}
