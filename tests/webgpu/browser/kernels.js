// The WGSL files with a fixed interface, in a browser: every file compiled, every entry run on a small
// case against plain loops in double precision. `runAll` returns
//   {adapter, features, kernels: [{kernel, ok, error, message}]}
// where error is the largest difference, relative to the largest value of the reference.

function random(n, seed, scale = 1) {
  let state = (seed * 2654435761 + 1) >>> 0;
  return Float32Array.from({length: n}, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return ((state >>> 8) / 2 ** 23 - 1) * scale;
  });
}

const bits = (value) => new Uint32Array(Float32Array.of(value).buffer)[0];
const ceilDiv = (a, b) => Math.ceil(a / b);
const silu = (x) => x / (1 + Math.exp(-x));

function matmul(x, w, m, n, k) {
  const y = new Float64Array(m * n);
  for (let i = 0; i < m; ++i)
    for (let j = 0; j < k; ++j)
      for (let c = 0; c < n; ++c) y[i * n + c] += x[i * k + j] * w[j * n + c];
  return y;
}

// A case: inputs by binding (an array is uploaded), `out` by binding (a length), the uniform's words,
// the grid, and what the outputs should be.
function elementwise(name, f, nInputs) {
  const n = 5000;
  const inputs = [random(n, 1, 8), random(n, 2, 8)].slice(0, nInputs);
  const expected = Float64Array.from({length: n}, (_, i) => f(...inputs.map((v) => v[i])));
  const file = `elementwise/${name}.wgsl`;
  const both = {file, bindings: [...inputs, n], uniform: [n], expected: {[nInputs]: expected}};
  return [{...both, entry: 'main', grid: [ceilDiv(n, 256)]},
          {...both, entry: 'main_vec4', grid: [ceilDiv(n, 1024)]}];
}

function embedding() {
  const [t, d, v] = [5, 36, 7];
  const ids = Uint32Array.of(3, 0, 6, 3, 9);  // the last is not in the table
  const weight = random(v * d, 3);
  const expected = Float64Array.from(
      {length: t * d}, (_, i) => ids[Math.floor(i / d)] < v ? weight[ids[Math.floor(i / d)] * d + i % d] : 0);
  const both = {file: 'embedding/embedding.wgsl', bindings: [ids, weight, t * d], uniform: [t, d],
                expected: {2: expected}};
  return [{...both, entry: 'main', grid: [1]}, {...both, entry: 'main_vec4', grid: [1]}];
}

function norm(name, t, d) {
  const [x, w, b] = [random(t * d, 4, 2), random(d, 5), random(d, 6)];
  const layer = name === 'layernorm';
  const expected = new Float64Array(t * d);
  for (let r = 0; r < t; ++r) {
    const row = x.subarray(r * d, (r + 1) * d);
    const mean = layer ? row.reduce((sum, value) => sum + value, 0) / d : 0;
    const square = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / d;
    for (let i = 0; i < d; ++i) {
      expected[r * d + i] =
          (row[i] - mean) / Math.sqrt(square + 1e-5) * w[i] + (layer ? b[i] : 0);
    }
  }
  const bindings = layer ? [x, w, b, t * d] : [x, w, t * d];
  const both = {file: `norm/${name}.wgsl`, bindings, uniform: [t, d, bits(1e-5), 0],
                expected: {[bindings.length - 1]: expected}};
  return [{...both, entry: 'main', grid: [t]}, {...both, entry: 'main_vec4', grid: [ceilDiv(t, 4)]}];
}

function softmax(r, c) {
  const x = random(r * c, 7, 10);
  const expected = new Float64Array(r * c);
  for (let i = 0; i < r; ++i) {
    const row = x.subarray(i * c, (i + 1) * c);
    const largest = row.reduce((a, b) => Math.max(a, b));
    const sum = row.reduce((total, value) => total + Math.exp(value - largest), 0);
    row.forEach((value, j) => { expected[i * c + j] = Math.exp(value - largest) / sum; });
  }
  const both = {file: 'softmax/softmax.wgsl', bindings: [x, r * c], uniform: [r, c],
                expected: {1: expected}};
  return [{...both, entry: 'main', grid: [r]}, {...both, entry: 'main_vec4', grid: [ceilDiv(r, 4)]}];
}

function rope() {
  const [t, heads, kvHeads, d, offset] = [5, 6, 2, 64, 5000];
  const q = random(t * heads * d, 8), k = random(t * kvHeads * d, 9);
  const rotated = (x, n) => {
    const y = new Float64Array(x.length);
    for (let pair = 0; pair < x.length / 2; ++pair) {
      const i = pair % (d / 2), token = Math.floor(pair / (n * d / 2));
      const angle = (offset + token) * 10000 ** (-2 * i / d);
      const [a, b] = [x[2 * pair], x[2 * pair + 1]];
      y[2 * pair] = a * Math.cos(angle) - b * Math.sin(angle);
      y[2 * pair + 1] = a * Math.sin(angle) + b * Math.cos(angle);
    }
    return y;
  };
  const pairs = t * heads * d / 2;
  const both = {file: 'rope/rope.wgsl', bindings: [q, k],
                uniform: [t, heads, kvHeads, d, bits(10000), offset],
                expected: {0: rotated(q, heads), 1: rotated(k, kvHeads)}};
  return [{...both, entry: 'main', grid: [ceilDiv(pairs, 256)]},
          {...both, entry: 'main_vec4', grid: [ceilDiv(pairs, 1024)]}];
}

function attention(t, s, heads, kvHeads, d, offset) {
  const q = random(t * heads * d, 9, 3), k = random(s * kvHeads * d, 10, 3);
  const v = random(s * kvHeads * d, 11);
  const expected = new Float64Array(t * heads * d);
  for (let i = 0; i < t; ++i) {
    for (let h = 0; h < heads; ++h) {
      const kv = Math.floor(h / (heads / kvHeads)), row = (i * heads + h) * d;
      const scores = [];
      for (let j = 0; j <= Math.min(offset + i, s - 1); ++j) {
        let dot = 0;
        for (let n = 0; n < d; ++n) dot += q[row + n] * k[(j * kvHeads + kv) * d + n];
        scores.push(dot / Math.sqrt(d));
      }
      const largest = Math.max(...scores);
      const sum = scores.reduce((total, score) => total + Math.exp(score - largest), 0);
      scores.forEach((score, j) => {
        const p = Math.exp(score - largest) / sum;
        for (let n = 0; n < d; ++n) expected[row + n] += p * v[(j * kvHeads + kv) * d + n];
      });
    }
  }
  return [{file: 'attention/attention.wgsl', entry: 'main', bindings: [q, k, v, t * heads * d],
           uniform: [t, s, heads, kvHeads, d, offset], grid: [t, heads], expected: {3: expected}}];
}

function matmulCase(m, k, n) {
  const a = random(m * k, 12), b = random(k * n, 13);
  return [{file: 'matmul/matmul.wgsl', entry: 'main', bindings: [a, b, m * n], uniform: [m, k, n],
           grid: [ceilDiv(n, 16), ceilDiv(m, 16)], expected: {2: matmul(a, b, m, n, k)}}];
}

function int4(m, k, n, group) {
  const groups = ceilDiv(k * n, group);
  const a = random(m * k, 14), scales = random(groups, 15, 0.1), zeros = random(groups, 16, 4);
  const words = new Uint32Array(ceilDiv(k * n, 8)), b = new Float64Array(k * n);
  let state = 99;
  for (let flat = 0; flat < k * n; ++flat) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[flat >> 3] |= (state >>> 28) << (4 * (flat % 8));
    const g = Math.floor(flat / group);
    b[flat] = ((state >>> 28) - zeros[g]) * scales[g];
  }
  return [{file: 'matmul/matmul_int4.wgsl', entry: 'main', bindings: [a, words, scales, zeros, m * n],
           uniform: [m, k, n, group], grid: [ceilDiv(n, 16), ceilDiv(m, 16)],
           expected: {4: matmul(a, b, m, n, k)}}];
}

function linear(suffix) {
  const [m, n, k] = [70, 68, 52];
  const [x, up, w, r] = [random(m * k, 17, 2), random(m * k, 18, 2), random(k * n, 19), random(m * n, 20)];
  const hidden = Float64Array.from(x, (value, i) => silu(value) * up[i]);
  const plain = matmul(x, w, m, n, k), gated = matmul(hidden, w, m, n, k);
  const plus = (y) => y.map((value, i) => value + r[i]);
  const all = {file: `matmul/linear${suffix}.wgsl`, uniform: [m, n, k, 0],
               grid: [ceilDiv(n, 64), ceilDiv(m, 64)]};
  return [
    {...all, entry: `matmul${suffix}`, bindings: [x, w, m * n], expected: {2: plain}},
    {...all, entry: `matmul_residual${suffix}`, bindings: [x, w, r, m * n], expected: {3: plus(plain)}},
    {...all, entry: `matmul_residual_swiglu_a${suffix}`, bindings: [x, up, w, r, m * n],
     expected: {4: plus(gated)}},
  ];
}

function matvec(file) {
  const [rows, cols] = [70, 500];
  const w = random(rows * cols, 21), x = random(cols, 22);
  return [{file: `matmul/${file}.wgsl`, entry: 'main', bindings: [w, x, rows], uniform: [rows, cols],
           grid: [ceilDiv(rows, 4)], expected: {2: matmul(w, x, rows, 1, cols)}}];
}

const cases = [
  ...elementwise('add', (a, b) => a + b, 2),
  ...elementwise('mul', (a, b) => a * b, 2),
  ...elementwise('silu', silu, 1),
  ...elementwise('gelu', (x) => 0.5 * x * (1 + Math.tanh(0.7978845608 * (x + 0.044715 * x ** 3))), 1),
  ...embedding(),
  ...norm('rmsnorm', 9, 100), ...norm('rmsnorm', 9, 300),
  ...norm('layernorm', 9, 100), ...norm('layernorm', 9, 300),
  ...softmax(9, 20), ...softmax(9, 300),
  ...rope(),
  ...attention(3, 200, 4, 2, 64, 190), ...attention(40, 40, 2, 1, 80, 0),
  ...matmulCase(1, 100, 50), ...matmulCase(20, 70, 30), ...matmulCase(250, 40, 260),
  ...int4(1, 64, 40, 32), ...int4(20, 30, 17, 5), ...int4(250, 40, 260, 32),
  ...linear(''), ...linear('_w16'),
  ...matvec('simd_matvec'), ...matvec('simd_matvec_shared'),
];

function upload(device, data, usage) {
  const buffer = device.createBuffer({size: data.byteLength, usage, mappedAtCreation: true});
  new data.constructor(buffer.getMappedRange()).set(data);
  buffer.unmap();
  return buffer;
}

async function run(device, module, test) {
  const pipeline = await device.createComputePipelineAsync(
      {layout: 'auto', compute: {module, entryPoint: test.entry}});
  const storage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC;
  const buffers = test.bindings.map(
      (data) => upload(device, typeof data === 'number' ? new Float32Array(data).fill(NaN) : data, storage));
  buffers.push(upload(device, Uint32Array.from(test.uniform), GPUBufferUsage.UNIFORM));
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({binding, resource: {buffer}})),
  });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(...test.grid);
  pass.end();
  const reads = Object.entries(test.expected).map(([binding, expected]) => {
    const size = expected.length * 4;
    const staging = device.createBuffer({size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
    encoder.copyBufferToBuffer(buffers[binding], 0, staging, 0, size);
    return {staging, expected};
  });
  device.queue.submit([encoder.finish()]);
  let error = 0;
  for (const {staging, expected} of reads) {
    await staging.mapAsync(GPUMapMode.READ);
    const got = new Float32Array(staging.getMappedRange());
    const largest = expected.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-30);
    expected.forEach((value, i) => {
      const difference = Math.abs(got[i] - value) / largest;
      if (!(difference <= error)) error = Number.isNaN(difference) ? Infinity : difference;
    });
  }
  buffers.forEach((buffer) => buffer.destroy());
  return error;
}

export async function runAll() {
  const adapter = navigator.gpu && await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error('no WebGPU adapter');
  const features = ['shader-f16', 'subgroups'].filter((name) => adapter.features.has(name));
  const device = await adapter.requestDevice({requiredFeatures: features});
  const kernels = [];
  const modules = {};
  for (const test of cases) {
    const result = {kernel: `${test.file}:${test.entry} (${test.uniform})`, ok: false};
    kernels.push(result);
    if (!modules[test.file]) {
      let code = await (await fetch(`/src/ops/${test.file}`)).text();
      if (!features.includes('shader-f16') && code.startsWith('enable f16;')) {
        // Everything but the type itself can still be checked.
        code = code.replace('enable f16;', 'alias f16 = f32;');
      }
      if (!features.includes('subgroups') && code.startsWith('enable subgroups;')) {
        Object.assign(result, {ok: true, message: 'skipped: the adapter has no subgroups'});
        continue;
      }
      const module = device.createShaderModule({code, label: test.file});
      const info = await module.getCompilationInfo();
      modules[test.file] = {
        module,
        messages: info.messages.map((m) => `${m.type} ${m.lineNum}:${m.linePos} ${m.message}`),
      };
    }
    const {module, messages} = modules[test.file];
    if (test.file.endsWith('_w16.wgsl') && features.includes('shader-f16')) {
      // Weights as f16: a browser without Float16Array is not worth a converter here.
      const at = test.bindings.findIndex((data) => data.length === test.uniform[1] * test.uniform[2]);
      if (typeof Float16Array === 'undefined') {
        Object.assign(result, {ok: messages.length === 0, message: 'compiled only: no Float16Array'});
        continue;
      }
      test.bindings[at] = Float16Array.from(test.bindings[at]);
    }
    try {
      device.pushErrorScope('validation');
      result.error = await run(device, module, test);
      const failure = await device.popErrorScope();
      result.message = [...messages, ...(failure ? [failure.message] : [])].join('; ');
      const tolerance = test.file.endsWith('_w16.wgsl') && features.includes('shader-f16') ? 1e-3 : 1e-5;
      result.ok = result.message === '' && result.error < tolerance;
    } catch (error) {
      result.message = [...messages, String(error)].join('; ');
    }
  }
  const info = adapter.info || {};
  return {adapter: `${info.vendor} ${info.architecture} ${info.description}`.trim(), features, kernels};
}
