// The linear layers of a transformer, forward. All matrices are row-major.
//
//   entry                        computes                          bindings, in this order
//   matmul                       Y = X W                           X r, W r, Y rw, dims
//   matmul_residual              Y = X W + R                       X r, W r, R r, Y rw, dims
//   matmul_residual_swiglu_a     Y = (silu(G) * U) W + R           G r, U r, W r, R r, Y rw, dims
//
// X, G and U are [M, K], W is [K, N], R and Y are [M, N]. X, G, U are bound as vec4<f32>, W as
// vec4<f32>, R and Y as f32; dims is vec4<u32>(M, N, K, 0). K and N must be divisible by 4.
// Grid: (ceil(N / 64), ceil(M / 64)), 16x16 threads. Where one of them exceeds 65,535, dispatch any
// (x, y, z) whose product is at least as large as theirs.
//
// A workgroup makes a 64x64 block of Y, 4x4 outputs a thread, in steps of 16 terms. The operands of
// a step lie in one half of the workgroup's memory (16,384 bytes in all); the next step's are
// loaded into registers first, wait there while this step's are multiplied, and then go into the
// other half: one barrier a step. Loads never leave the matrices: where the block hangs over an
// edge, the last row or column is read again; the terms beyond K are zeros.

@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>;

@group(0) @binding(2) var<storage, read> R_mr: array<f32>;
@group(0) @binding(3) var<storage, read_write> Y_mr: array<f32>;
@group(0) @binding(4) var<uniform> dims_mr: vec4<u32>;

@group(0) @binding(0) var<storage, read> GATE_mrs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> UP_mrs: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> W_mrs: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> R_mrs: array<f32>;
@group(0) @binding(4) var<storage, read_write> Y_mrs: array<f32>;
@group(0) @binding(5) var<uniform> dims_mrs: vec4<u32>;

// Two halves each: X as [row][4] along K, W as [k][16] along N.
var<workgroup> tile_x: array<vec4<f32>, 512>;
var<workgroup> tile_w: array<vec4<f32>, 512>;

// What a thread loads and makes: vec4 indices of its operands for the first step, its outputs.
struct Place {
  thread: u32,
  tx: u32,
  ty: u32,
  x_begin: u32,   // of its row of X
  x_k4: u32,
  w_k: u32,
  w_column4: u32,
  row: u32,       // the first of its four rows of Y
  column: u32,    // the first of its four columns
}

fn place_of(m: u32, n: u32, k: u32, block_row: u32, block_column: u32, tx: u32, ty: u32) -> Place {
  let thread = 16u * ty + tx;
  let x_row = min(64u * block_row + thread / 4u, m - 1u);
  let w_column4 = min(16u * block_column + tx, n / 4u - 1u);
  return Place(thread, tx, ty, x_row * (k / 4u), thread % 4u, ty, w_column4,
               64u * block_row + 4u * ty, 64u * block_column + 4u * tx);
}

// The block that a group makes: (row, column), the row past the end for groups too many.
fn block_of(m: u32, n: u32, group: vec3<u32>, groups: vec3<u32>) -> vec2<u32> {
  let columns = (n + 63u) / 64u;
  let index = (group.z * groups.y + group.y) * groups.x + group.x;
  return vec2<u32>(index / columns, index % columns);
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

// Four terms: a is the place of row 0 of X, b that of the first row of W.
fn add_four(sum: Block, a: u32, b: u32) -> Block {
  let a0 = tile_x[a];
  let a1 = tile_x[a + 4u];
  let a2 = tile_x[a + 8u];
  let a3 = tile_x[a + 12u];
  var s = add_term(sum, vec4<f32>(a0.x, a1.x, a2.x, a3.x), tile_w[b]);
  s = add_term(s, vec4<f32>(a0.y, a1.y, a2.y, a3.y), tile_w[b + 16u]);
  s = add_term(s, vec4<f32>(a0.z, a1.z, a2.z, a3.z), tile_w[b + 32u]);
  return add_term(s, vec4<f32>(a0.w, a1.w, a2.w, a3.w), tile_w[b + 48u]);
}

fn add_step(sum: Block, half: u32, tx: u32, ty: u32) -> Block {
  let a = 256u * half + 16u * ty;
  let b = 256u * half + tx;
  let first_half = add_four(add_four(sum, a, b), a + 1u, b + 64u);
  return add_four(add_four(first_half, a + 2u, b + 128u), a + 3u, b + 192u);
}

// exp is only ever taken of -|x|, so that it cannot overflow.
fn silu(x: vec4<f32>) -> vec4<f32> {
  let e = exp(-abs(x));
  return x * select(e, vec4<f32>(1.0), x >= vec4<f32>(0.0)) / (1.0 + e);
}

fn load_x(p: Place, step: u32, k: u32) -> vec4<f32> {
  let k4 = 4u * step + p.x_k4;
  return select(vec4<f32>(0.0), X[p.x_begin + min(k4, k / 4u - 1u)], k4 < k / 4u);
}

fn load_w(p: Place, step: u32, n: u32, k: u32) -> vec4<f32> {
  return W[min(16u * step + p.w_k, k - 1u) * (n / 4u) + p.w_column4];
}

fn load_hidden(p: Place, step: u32, k: u32) -> vec4<f32> {
  let k4 = 4u * step + p.x_k4;
  let at = p.x_begin + min(k4, k / 4u - 1u);
  return select(vec4<f32>(0.0), silu(GATE_mrs[at]) * UP_mrs[at], k4 < k / 4u);
}

fn load_w_mrs(p: Place, step: u32, n: u32, k: u32) -> vec4<f32> {
  return W_mrs[min(16u * step + p.w_k, k - 1u) * (n / 4u) + p.w_column4];
}

fn store_y(row: u32, column: u32, m: u32, n: u32, y: vec4<f32>) {
  if (row < m && column < n) {
    let at = row * n + column;
    Y[at] = y.x;
    Y[at + 1u] = y.y;
    Y[at + 2u] = y.z;
    Y[at + 3u] = y.w;
  }
}

fn store_mr(row: u32, column: u32, m: u32, n: u32, y: vec4<f32>) {
  if (row < m && column < n) {
    let at = row * n + column;
    Y_mr[at] = y.x + R_mr[at];
    Y_mr[at + 1u] = y.y + R_mr[at + 1u];
    Y_mr[at + 2u] = y.z + R_mr[at + 2u];
    Y_mr[at + 3u] = y.w + R_mr[at + 3u];
  }
}

fn store_mrs(row: u32, column: u32, m: u32, n: u32, y: vec4<f32>) {
  if (row < m && column < n) {
    let at = row * n + column;
    Y_mrs[at] = y.x + R_mrs[at];
    Y_mrs[at + 1u] = y.y + R_mrs[at + 1u];
    Y_mrs[at + 2u] = y.z + R_mrs[at + 2u];
    Y_mrs[at + 3u] = y.w + R_mrs[at + 3u];
  }
}

@compute @workgroup_size(16, 16)
fn matmul(@builtin(workgroup_id) group: vec3<u32>,
          @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_id) thread: vec3<u32>) {
  let m = dims.x;
  let n = dims.y;
  let k = dims.z;
  let block = block_of(m, n, group, groups);
  if (64u * block.x < m) {
    let p = place_of(m, n, k, block.x, block.y, thread.x, thread.y);
    tile_x[p.thread] = load_x(p, 0u, k);
    tile_w[p.thread] = load_w(p, 0u, n, k);
    workgroupBarrier();
    let n_steps = (k + 15u) / 16u;
    var sum = Block(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    for (var step = 1u; step < n_steps; step++) {
      let next_x = load_x(p, step, k);
      let next_w = load_w(p, step, n, k);
      sum = add_step(sum, (step - 1u) & 1u, p.tx, p.ty);
      tile_x[256u * (step & 1u) + p.thread] = next_x;
      tile_w[256u * (step & 1u) + p.thread] = next_w;
      workgroupBarrier();
    }
    sum = add_step(sum, (n_steps - 1u) & 1u, p.tx, p.ty);
    store_y(p.row, p.column, m, n, sum.r0);
    store_y(p.row + 1u, p.column, m, n, sum.r1);
    store_y(p.row + 2u, p.column, m, n, sum.r2);
    store_y(p.row + 3u, p.column, m, n, sum.r3);
  }
}

@compute @workgroup_size(16, 16)
fn matmul_residual(@builtin(workgroup_id) group: vec3<u32>,
                   @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_id) thread: vec3<u32>) {
  let m = dims_mr.x;
  let n = dims_mr.y;
  let k = dims_mr.z;
  let block = block_of(m, n, group, groups);
  if (64u * block.x < m) {
    let p = place_of(m, n, k, block.x, block.y, thread.x, thread.y);
    tile_x[p.thread] = load_x(p, 0u, k);
    tile_w[p.thread] = load_w(p, 0u, n, k);
    workgroupBarrier();
    let n_steps = (k + 15u) / 16u;
    var sum = Block(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    for (var step = 1u; step < n_steps; step++) {
      let next_x = load_x(p, step, k);
      let next_w = load_w(p, step, n, k);
      sum = add_step(sum, (step - 1u) & 1u, p.tx, p.ty);
      tile_x[256u * (step & 1u) + p.thread] = next_x;
      tile_w[256u * (step & 1u) + p.thread] = next_w;
      workgroupBarrier();
    }
    sum = add_step(sum, (n_steps - 1u) & 1u, p.tx, p.ty);
    store_mr(p.row, p.column, m, n, sum.r0);
    store_mr(p.row + 1u, p.column, m, n, sum.r1);
    store_mr(p.row + 2u, p.column, m, n, sum.r2);
    store_mr(p.row + 3u, p.column, m, n, sum.r3);
  }
}

@compute @workgroup_size(16, 16)
fn matmul_residual_swiglu_a(@builtin(workgroup_id) group: vec3<u32>,
                            @builtin(num_workgroups) groups: vec3<u32>,
                            @builtin(local_invocation_id) thread: vec3<u32>) {
  let m = dims_mrs.x;
  let n = dims_mrs.y;
  let k = dims_mrs.z;
  let block = block_of(m, n, group, groups);
  if (64u * block.x < m) {
    let p = place_of(m, n, k, block.x, block.y, thread.x, thread.y);
    tile_x[p.thread] = load_hidden(p, 0u, k);
    tile_w[p.thread] = load_w_mrs(p, 0u, n, k);
    workgroupBarrier();
    let n_steps = (k + 15u) / 16u;
    var sum = Block(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    for (var step = 1u; step < n_steps; step++) {
      let next_x = load_hidden(p, step, k);
      let next_w = load_w_mrs(p, step, n, k);
      sum = add_step(sum, (step - 1u) & 1u, p.tx, p.ty);
      tile_x[256u * (step & 1u) + p.thread] = next_x;
      tile_w[256u * (step & 1u) + p.thread] = next_w;
      workgroupBarrier();
    }
    sum = add_step(sum, (n_steps - 1u) & 1u, p.tx, p.ty);
    store_mrs(p.row, p.column, m, n, sum.r0);
    store_mrs(p.row + 1u, p.column, m, n, sum.r1);
    store_mrs(p.row + 2u, p.column, m, n, sum.r2);
    store_mrs(p.row + 3u, p.column, m, n, sum.r3);
  }
}
