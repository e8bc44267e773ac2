// Rotates pairs of every head of q, and of k where it is given, in place. One thread rotates WIDTH pairs.
//   HALF_SPLIT   1: pair i is (i, i + n_pairs); 0: (2 i, 2 i + 1)
//   HAS_K   1: k is bound
//   WIDTH   1; with HALF_SPLIT 4: vec4s of first and of second values; without 2: a vec4 of two pairs.
//           Then firsts and strides of q and k count vec4s, those of rotation vec4s of two turns
//   LIVE    1: tokens from live[live_first] on are not touched
struct Params {
  n_tokens: u32,
  n_heads: u32,
  n_kv_heads: u32,
  n_units: u32,  // groups of WIDTH pairs of a head
  q_first: u32,
  q_token_stride: u32,
  q_head_stride: u32,
  k_first: u32,
  k_token_stride: u32,
  k_head_stride: u32,
  rotation_first: u32,
  rotation_stride: u32,
  live_first: u32,
}
#if WIDTH == 1
alias Value = f32;
alias Turns = f32;
#else
alias Value = vec4<f32>;
alias Turns = vec4<f32>;
#endif
@group(0) @binding(0) var<storage, read_write> q: array<Value>;
@group(0) @binding(1) var<storage, read> rotation: array<Turns>;
#if HAS_K
@group(0) @binding(2) var<storage, read_write> k: array<Value>;
#endif
#if LIVE
@group(0) @binding(${2 + HAS_K}) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${2 + HAS_K + LIVE}) var<uniform> params: Params;

// The unit-th group of pairs of a head that starts at `head`: where its values are, and with
// neighbours the same place twice.
fn places(head: u32, unit: u32) -> vec2<u32> {
#if HALF_SPLIT
  return vec2<u32>(head + unit, head + unit + params.n_units);
#else
#if WIDTH == 1
  return vec2<u32>(head + 2u * unit, head + 2u * unit + 1u);
#else
  return vec2<u32>(head + unit);
#endif
#endif
}

struct Pairs {
  a: Value,
  b: Value,
}

// `a` and `b`: what is at both places.
fn rotated(a: Value, b: Value, token: u32, unit: u32) -> Pairs {
  let row = params.rotation_first + token * params.rotation_stride;
#if WIDTH == 1
  let cosine = rotation[row + 2u * unit];
  let sine = rotation[row + 2u * unit + 1u];
#else
#if HALF_SPLIT
  let low = rotation[row + 2u * unit];
  let high = rotation[row + 2u * unit + 1u];
  let cosine = vec4<f32>(low.xz, high.xz);
  let sine = vec4<f32>(low.yw, high.yw);
#else
  let turns = rotation[row + unit];
  let cosine = turns.xxzz;
  let sine = vec4<f32>(-turns.y, turns.y, -turns.w, turns.w);
  return Pairs(a * cosine + a.yxwz * sine, b);
#endif
#endif
#if WIDTH == 1 || HALF_SPLIT
  return Pairs(a * cosine - b * sine, a * sine + b * cosine);
#endif
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_tokens = min(params.n_tokens, live[params.live_first]);
#else
  let n_tokens = params.n_tokens;
#endif
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let token_head = i / params.n_units;
  let unit = i - token_head * params.n_units;
  let all_heads = params.n_heads + params.n_kv_heads;
  let token = token_head / all_heads;
  let head = token_head - token * all_heads;
  if (token >= n_tokens) {
    return;
  }
#if HAS_K
  if (head >= params.n_heads) {
    let at = places(params.k_first + token * params.k_token_stride +
                        (head - params.n_heads) * params.k_head_stride, unit);
    let y = rotated(k[at.x], k[at.y], token, unit);
    k[at.x] = y.a;
#if WIDTH == 1 || HALF_SPLIT
    k[at.y] = y.b;
#endif
    return;
  }
#endif
  let at = places(params.q_first + token * params.q_token_stride + head * params.q_head_stride, unit);
  let y = rotated(q[at.x], q[at.y], token, unit);
  q[at.x] = y.a;
#if WIDTH == 1 || HALF_SPLIT
  q[at.y] = y.b;
#endif
}
