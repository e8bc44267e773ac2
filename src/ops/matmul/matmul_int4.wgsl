// C[M, N] = A[M, K] B[K, N], row-major, with B in four bits: element (k, n) has flat index k N + n,
// sits in word flat / 8 at bit 4 (flat % 8), belongs to group flat / group_size and stands for
// (nibble - zeros[group]) * scales[group].
//
// Bindings: A f32[M, K] r, B_q u32[ceil(K N / 8)] r, scales f32[ceil(K N / group_size)] r,
//           zeros as scales r, C f32[M, N] rw, params { M, K, N, group_size } (16 bytes).
// Grid: (ceil(N / 16), ceil(M / 16)), 16x16 threads. Where one of them exceeds 65,535, dispatch any
// (x, y, z) whose product is at least as large as theirs.
//
// How much of C a workgroup makes follows the shape; with larger blocks the first groups of the
// grid make all of C, and those left over do nothing.
//   M <= 4, N and group_size divisible by 8   64 columns: eight words of a row of B side by side,
//                                             the rows split over 32 threads each
//   small C                                   16x16, one output a thread, 64 terms a step
//   otherwise                                 64x64, 4x4 outputs a thread, 32 terms a step; the
//                                             next step's operands wait in registers while this
//                                             step's are multiplied
// B is dequantised on its way into workgroup memory (16,384 bytes). Loads never leave the operands:
// where a block hangs over an edge, the last row or column is read again; the terms beyond K are
// zeros.

struct Params {
  M: u32,
  K: u32,
  N: u32,
  group_size: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B_q: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> zeros: array<f32>;
@group(0) @binding(4) var<storage, read_write> C: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// 64x64: A as [row][8], then B as [k][16]. 16x16: A as [row][17 of 16], then B as [16][column]. Few
// rows: [32 thread rows][32 columns], rows of A along each vec4.
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

// A shift where it can be: the division is a long sequence on most GPUs.
fn group_of(flat: u32) -> u32 {
  if ((params.group_size & (params.group_size - 1u)) == 0u) {
    return flat >> firstTrailingBit(params.group_size);
  }
  return flat / params.group_size;
}

fn value_at(flat: u32) -> f32 {
  let group = group_of(flat);
  return (f32((B_q[flat / 8u] >> (4u * (flat % 8u))) & 15u) - zeros[group]) * scales[group];
}

// B[k, column ... column + 3].
fn load_b(k: u32, column: u32) -> vec4<f32> {
  let begin = min(k, params.K - 1u) * params.N;
  if (((params.N | params.group_size) & 3u) == 0u) {
    // The four lie in one half of a word, and in one group.
    let flat = begin + min(column, params.N - 4u);
    let bits = B_q[flat / 8u] >> (4u * (flat & 4u));
    let nibbles = (vec4<u32>(bits) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    let group = group_of(flat);
    return (vec4<f32>(nibbles) - zeros[group]) * scales[group];
  }
  let at = vec4<u32>(column, column + 1u, column + 2u, column + 3u);
  let safe = begin + min(at, vec4<u32>(params.N - 1u));
  return vec4<f32>(value_at(safe.x), value_at(safe.y), value_at(safe.z), value_at(safe.w));
}

// Four terms of a column of B, as load_a's.
fn load_b_down(k: u32, column: u32) -> vec4<f32> {
  let at = min(vec4<u32>(k, k + 16u, k + 32u, k + 48u), vec4<u32>(params.K - 1u));
  let safe = at * params.N + min(column, params.N - 1u);
  return vec4<f32>(value_at(safe.x), value_at(safe.y), value_at(safe.z), value_at(safe.w));
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
      if (column + n < params.N) {
        C[row * params.N + column + n] = y[n];
      }
    }
  }
}

fn block_64x64(row: u32, column: u32, tx: u32, ty: u32) {
  let thread = 16u * ty + tx;
  // Two vec4 of each operand a thread.
  let a_row = row + thread / 8u;
  let a_k = thread % 8u;
  let b_column = column + 4u * tx;
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

// Up to four rows of A, one in each component.
fn column_of_a(k: u32) -> vec4<f32> {
  if (params.M == 1u) {
    return vec4<f32>(A[k], 0.0, 0.0, 0.0);
  }
  let last = params.M - 1u;
  return vec4<f32>(A[k], A[min(1u, last) * params.K + k], A[min(2u, last) * params.K + k],
                   A[min(3u, last) * params.K + k]);
}

// Four columns of a half of the few-row sums: adds up the 32 thread rows and writes.
fn write_few(s0: vec4<f32>, s1: vec4<f32>, s2: vec4<f32>, s3: vec4<f32>, column: u32, half: u32,
             thread: u32) {
  let word = thread % 8u;
  let slot = 32u * (thread / 8u) + word;
  workgroupBarrier();  // the other half is done with the tile
  tile[slot] = s0;
  tile[slot + 8u] = s1;
  tile[slot + 16u] = s2;
  tile[slot + 24u] = s3;
  workgroupBarrier();
  tile[thread] = (tile[thread] + tile[thread + 256u]) + (tile[thread + 512u] + tile[thread + 768u]);
  workgroupBarrier();
  // Column 8 (n % 8) + 4 half + n / 8 of the 64 is column n of the 32; each row a thread.
  let n = thread % 32u;
  let row = thread / 32u;
  let c = column + 8u * (n % 8u) + 4u * half + n / 8u;
  if (row < params.M && c < params.N) {
    let y = ((tile[n] + tile[n + 32u]) + (tile[n + 64u] + tile[n + 96u])) +
            ((tile[n + 128u] + tile[n + 160u]) + (tile[n + 192u] + tile[n + 224u]));
    C[row * params.N + c] = y[row];
  }
}

// Eight columns of up to four rows: component r of c<n> is row r, column n.
struct Columns {
  c0: vec4<f32>,
  c1: vec4<f32>,
  c2: vec4<f32>,
  c3: vec4<f32>,
  c4: vec4<f32>,
  c5: vec4<f32>,
  c6: vec4<f32>,
  c7: vec4<f32>,
}

// Adds a term: a scaled column of A times the eight values of a word.
fn add_word(sum: Columns, a: vec4<f32>, word: u32, zero: f32) -> Columns {
  let bits = vec4<u32>(word);
  let low = vec4<f32>((bits >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u)) - zero;
  let high = vec4<f32>((bits >> vec4<u32>(16u, 20u, 24u, 28u)) & vec4<u32>(15u)) - zero;
  return Columns(fma(a, vec4<f32>(low.x), sum.c0), fma(a, vec4<f32>(low.y), sum.c1),
                 fma(a, vec4<f32>(low.z), sum.c2), fma(a, vec4<f32>(low.w), sum.c3),
                 fma(a, vec4<f32>(high.x), sum.c4), fma(a, vec4<f32>(high.y), sum.c5),
                 fma(a, vec4<f32>(high.z), sum.c6), fma(a, vec4<f32>(high.w), sum.c7));
}

fn few_rows(column: u32, thread: u32) {
  let first_column = min(column + 8u * (thread % 8u), params.N - 8u);
  let none = vec4<f32>(0.0);
  var sum = Columns(none, none, none, none, none, none, none, none);
  // Four terms at a time, their loads all under way before the first is used.
  var k = thread / 8u;
  for (; k + 96u < params.K; k += 128u) {
    let flat = vec4<u32>(k, k + 32u, k + 64u, k + 96u) * params.N + first_column;
    let words = vec4<u32>(B_q[flat.x / 8u], B_q[flat.y / 8u], B_q[flat.z / 8u], B_q[flat.w / 8u]);
    let groups = vec4<u32>(group_of(flat.x), group_of(flat.y), group_of(flat.z), group_of(flat.w));
    let zero = vec4<f32>(zeros[groups.x], zeros[groups.y], zeros[groups.z], zeros[groups.w]);
    let scale = vec4<f32>(scales[groups.x], scales[groups.y], scales[groups.z], scales[groups.w]);
    sum = add_word(sum, column_of_a(k) * scale.x, words.x, zero.x);
    sum = add_word(sum, column_of_a(k + 32u) * scale.y, words.y, zero.y);
    sum = add_word(sum, column_of_a(k + 64u) * scale.z, words.z, zero.z);
    sum = add_word(sum, column_of_a(k + 96u) * scale.w, words.w, zero.w);
  }
  for (; k < params.K; k += 32u) {
    let flat = k * params.N + first_column;
    let group = group_of(flat);
    sum = add_word(sum, column_of_a(k) * scales[group], B_q[flat / 8u], zeros[group]);
  }
  write_few(sum.c0, sum.c1, sum.c2, sum.c3, column, 0u, thread);
  write_few(sum.c4, sum.c5, sum.c6, sum.c7, column, 1u, thread);
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) thread: vec3<u32>) {
  let place = (group.z * groups.y + group.y) * groups.x + group.x;
  let wide_columns = (params.N + 63u) / 64u;
  let wide_blocks = wide_columns * ((params.M + 63u) / 64u);
  let columns = (params.N + 15u) / 16u;
  if (params.M <= 4u && ((params.N | params.group_size) & 7u) == 0u) {
    if (place < wide_columns) {
      few_rows(64u * place, 16u * thread.y + thread.x);
    }
  } else if (params.M > 16u && wide_blocks >= 16u) {
    if (place < wide_blocks) {
      block_64x64(64u * (place / wide_columns), 64u * (place % wide_columns), thread.x, thread.y);
    }
  } else if (place < columns * ((params.M + 15u) / 16u)) {
    block_16x16(16u * (place / columns), 16u * (place % columns), thread.x, thread.y);
  }
}
