// Nothing but multiply-adds, 32 chains a thread, to see what the device can do at most: `rounds` times 16
// of each. What the chains end with is written, so that none is left out.
struct Params {
  rounds: u32,
}

@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let a = input[0];
  let b = input[1] + f32(thread);
#for i in 0..8
  var sum${i} = b + ${i}.0;
#endfor
  for (var round = 0u; round < params.rounds; round += 1u) {
#for k in 0..16
#for i in 0..8
    sum${i} = fma(sum${i}, a, b);
#endfor
#endfor
  }
  output[group.x * 256u + thread] = sum0 + sum1 + sum2 + sum3 + sum4 + sum5 + sum6 + sum7;
}
