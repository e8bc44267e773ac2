// output = 0.5 x (1 + tanh(0.7978845608 (x + 0.044715 x^3))), element by element.
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

// 0.5 (1 + tanh(u)) is sigmoid(2 u): free of the cancellation of 1 + tanh where x < 0, and of
// drivers whose tanh of a large argument is NaN. Between -10 and 10 exp(-2 u), here as a power of
// two, stays finite; beyond them the sigmoid is 0 (but for 1e-38) or 1.
fn gelu(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0));
  let e = exp2(c * (-2.302208198 - 0.10294323957 * c * c));
  return max(x, c) / (1.0 + e);
}

fn flat_index(group: vec3<u32>, groups: vec3<u32>, thread: u32) -> u32 {
  return ((group.z * groups.y + group.y) * groups.x + group.x) * 256u + thread;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  if (i < params.count) {
    output[i] = gelu(vec4<f32>(input[i], 0.0, 0.0, 0.0)).x;
  }
}

@compute @workgroup_size(256)
fn main_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
  let i = flat_index(group, groups, thread);
  if (i < params.count / 4u) {
    output4[i] = gelu(input4[i]);
  }
}
