// output[t, d] = weight[input_ids[t], d]: rows of a table, looked up. An id beyond the table gives
// a row of zeros.
//
// Bindings: input_ids u32[T] r, weight f32[V, D] r, output f32[T, D] rw,
//           params { seq_len = T, hidden_size = D } (8 bytes).
//           V follows from the size of the weight's binding.
// Grid: main ceil(T D / 256); main_vec4 ceil(T D / 1024), for D divisible by 4. Where that exceeds
// 65,535, dispatch any (x, y, z) whose product is at least as large.

struct Params {
  seq_len: u32,
  hidden_size: u32,
}

@group(0) @binding(0) var<storage, read> input_ids: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<storage, read> weight4: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> output4: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Whether all of row `id` lies in a binding of `length` values; they are fewer than 2^31, so that a
// product that might overflow is too large already.
fn has_row(id: u32, width: u32, length: u32) -> bool {
  return f32(id) * f32(width) < 2147483648.0 && (id + 1u) * width <= length;
}

fn flat_index(group: vec3<u32>, groups: vec3<u32>, thread: u32) -> u32 {
  return ((group.z * groups.y + group.y) * groups.x + group.x) * 256u + thread;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  let width = params.hidden_size;
  if (i < params.seq_len * width) {
    let t = i / width;
    let id = input_ids[t];
    var value = 0.0;
    if (has_row(id, width, arrayLength(&weight))) {
      value = weight[id * width + (i - t * width)];
    }
    output[i] = value;
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  let width = params.hidden_size / 4u;
  if (i < params.seq_len * width) {
    let t = i / width;
    let id = input_ids[t];
    var value = vec4<f32>(0.0);
    if (has_row(id, width, arrayLength(&weight4))) {
      value = weight4[id * width + (i - t * width)];
    }
    output4[i] = value;
  }
}
