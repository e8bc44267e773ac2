// output = input, a vec4 a thread: what memory can do, for kernels to be compared with. `count` vec4s.
struct Params {
  count: u32,
}

@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = ((group.z * groups.y + group.y) * groups.x + group.x) * 256u + thread;
  if (i < params.count) {
    output[i] = input[i];
  }
}
