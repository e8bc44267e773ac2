// output = x sigmoid(x), element by element.
//
// Bindings: input f32[n] r, output f32[n] rw, params { count } (4 bytes).
// Grid: main ceil(n / 256); main_vec4 ceil(n / 1024), for n divisible by 4. Where that exceeds
// 65,535, dispatch any (x, y, z) whose product is at least as large.

struct Params {
  count: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(0) var<storage, read> input4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output4: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

// Below -87 the result is 0 but for 1e-36, and exp does not overflow before.
fn silu(x: vec4<f32>) -> vec4<f32> {
  let c = max(x, vec4<f32>(-87.0));
  return c / (1.0 + exp(-c));
}

fn flat_index(group: vec3<u32>, groups: vec3<u32>, thread: u32) -> u32 {
  return ((group.z * groups.y + group.y) * groups.x + group.x) * 256u + thread;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  if (i < params.count) {
    output[i] = silu(vec4<f32>(input[i], 0.0, 0.0, 0.0)).x;
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  if (i < params.count / 4u) {
    output4[i] = silu(input4[i]);
  }
}
