// Checks and measures the kernels of kernels.js on a device of gpu.js.

const EPS = 2 ** -24;        // the rounding of one f32 operation
const SMALLEST = 2 ** -126;  // f32 below this may be flushed to zero
const SAMPLES = 64;          // values of a measured problem that are checked
const BATCH_MS = 40;         // a timed batch takes at least this long: browsers round their clocks
const BATCHES = 5;
const BUDGET_MS = 400;       // no further batch after this: software adapters are slow

// ---- right or wrong

// The worst of these outputs, measured in what it may be off.
function compare(problem, wanted, got) {
  let worst = {used: -1, error: 0, bound: 0};
  wanted.forEach(([binding, indices], n) => {
    indices.forEach((index, i) => {
      const {value, norm, units} = problem.outputs[binding].at(index);
      const difference = Math.abs(got[n][i] - value);
      const used = difference / (EPS * units * norm + SMALLEST);
      if (!(used <= worst.used)) {  // NaN is the worst
        const what = `element ${index} of binding ${binding} is ${got[n][i]}, expected ${value}`;
        worst = {used, error: difference / Math.max(norm, SMALLEST), bound: EPS * units, what};
      }
    });
  });
  return {...worst, ok: worst.used <= 1};
}

const every = (problem) => Object.entries(problem.outputs).map(
    ([binding, {length}]) => [binding, Array.from({length}, (_, i) => i)]);

// A few values all over each output, the first and the last of them too.
const some = (problem) => Object.entries(problem.outputs).map(([binding, {length}]) => {
  const n = Math.min(SAMPLES, length);
  return [binding, Array.from({length: n}, (_, i) => Math.floor(i * (length - 1) / Math.max(n - 1, 1)))];
});

// Every small problem of a kernel, every value of it. With `f32Weights` a file for f16 gets f32.
export async function check(gpu, kernel, {f32Weights = false} = {}) {
  const edit = (text) => f32Weights ? text.replace('enable f16;', 'alias f16 = f32;') : text;
  const {module, messages} = await gpu.load(kernel.file, edit);
  const pipeline = await gpu.pipeline(module, kernel.entry);
  let worst = {used: -1};
  for (const size of kernel.checks) {
    const problem = kernel.make(...size);
    const bindings = f32Weights ? problem.f32Bindings : problem.bindings;
    const job = await gpu.prepare(pipeline, problem, {poison: true, bindings});
    try {
      const wanted = every(problem);
      const result = compare(problem, wanted, await gpu.runAndRead(job, wanted));
      if (!(result.used <= worst.used)) worst = {...result, what: `${problem.shape}: ${result.what}`};
    } finally {
      job.release();
    }
  }
  return {...worst, pipeline, messages};
}

// ---- fast or slow

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

// Milliseconds of one repetition of what `encode(encoder, n)` does n times.
async function timeOne(gpu, encode) {
  const batch = (n) => gpu.time((encoder) => encode(encoder, n));
  const begin = performance.now();
  let n = 1, ms = await batch(1);
  while (ms < BATCH_MS && n < 4096) {
    n = Math.min(4096, Math.ceil(n * Math.max(1.5, Math.min(16, 1.2 * BATCH_MS / Math.max(ms, 0.1)))));
    ms = await batch(n);
  }
  const samples = [ms / n];
  while (samples.length < BATCHES && performance.now() - begin < BUDGET_MS) samples.push(await batch(n) / n);
  return median(samples);
}

const COPY = `
@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> copy: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> n: u32;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let i = (group.y * groups.x + group.x) * 256u + thread;
  if (i < n) {
    copy[i] = source[i];
  }
}`;

// Bytes a second, read and written: the better of a kernel and the copy command.
export async function copyRate(gpu, values) {
  const {module} = await gpu.compile('copy probe', COPY);
  const pipeline = await gpu.pipeline(module, 'main');
  const source = new Float32Array(values).fill(1);
  const job = await gpu.prepare(pipeline, {bindings: [source, values], uniform: [values / 4],
                                           grid: [Math.ceil(values / 1024)]}, {});
  const target = gpu.device.createBuffer({size: 4 * values, usage: GPUBufferUsage.COPY_DST});
  try {
    const kernelMs = await timeOne(gpu, (encoder, n) => gpu.dispatch(encoder, job, n));
    const commandMs = await timeOne(gpu, (encoder, n) => {
      for (let i = 0; i < n; ++i) encoder.copyBufferToBuffer(job.buffers[0], 0, target, 0, 4 * values);
    });
    return 8 * values / Math.min(kernelMs, commandMs) * 1000;
  } finally {
    job.release();
    target.destroy();
  }
}

const FMA_THREADS = 2 ** 19, FMA_CHAINS = 8, FMA_UNROLL = 4;

// Eight independent chains of vec4 a thread, so that nothing waits for the result before.
function fmaText(step) {
  const chains = Array.from({length: FMA_CHAINS}, (_, i) => `a${i}`);
  return `
@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> steps: u32;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let x = vec4<f32>(0.999, 0.998, 0.997, 0.996) - f32(id.x) * 1e-9;
  let y = vec4<f32>(0.001, 0.002, 0.003, 0.004);
  ${chains.map((a, i) => `var ${a} = x * ${i + 1}.0;`).join('\n  ')}
  for (var i = 0u; i < steps; i++) {
    ${Array(FMA_UNROLL).fill(chains.map((a) => `${a} = ${step(a)};`).join(' ')).join('\n    ')}
  }
  let sum = ${chains.join(' + ')};
  output[id.x] = sum.x + sum.y + sum.z + sum.w;
}`;
}

// f32 operations a second, two for a multiplication with addition: the better of two spellings.
export async function fmaRate(gpu) {
  const rates = [];
  for (const step of [(a) => `fma(${a}, x, y)`, (a) => `${a} * x + y`]) {
    const {module} = await gpu.compile('multiplication probe', fmaText(step));
    const pipeline = await gpu.pipeline(module, 'main');
    for (let steps = 1, ms = 0; ms < BATCH_MS / 16 && steps <= 4096; steps *= 8) {
      const job = await gpu.prepare(
          pipeline, {bindings: [FMA_THREADS], uniform: [steps], grid: [FMA_THREADS / 256]}, {});
      try {
        ms = await timeOne(gpu, (encoder, n) => gpu.dispatch(encoder, job, n));
        rates.push(FMA_THREADS * FMA_CHAINS * FMA_UNROLL * 4 * 2 * steps / ms * 1000);
      } finally {
        job.release();
      }
    }
  }
  return Math.max(...rates);
}

const powerOfTwo = (x, least, most) =>
    2 ** Math.floor(Math.log2(Math.min(Math.max(x, least), most)));

// How large measured problems are: `values` floats a tensor where memory is the limit, what two
// milliseconds of copying cover, but no more than 128 MiB or fifty microseconds of multiplications
// (without a GPU arithmetic is what takes time); and products of side^3, five milliseconds at a fifth
// of the peak.
export async function findScale(gpu) {
  const small = await copyRate(gpu, 2 ** 20);
  const most = Math.min(gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize, 2 ** 27) / 4;
  const fma = await fmaRate(gpu);
  return {values: powerOfTwo(Math.min(small * 0.002 / 4, fma * 0.00005), 2 ** 18, most),
          side: powerOfTwo(Math.cbrt(fma * 0.0005), 64, 4096), fma};
}

// One problem of a kernel that was checked: first its values, some of them, then its time.
export async function measure(gpu, kernel, pipeline, size) {
  const problem = kernel.make(...size);
  const job = await gpu.prepare(pipeline, problem, {poison: false});
  try {
    const wanted = some(problem);
    const result = compare(problem, wanted, await gpu.runAndRead(job, wanted));
    if (!result.ok) throw new Error(`${problem.shape}: ${result.what}`);
    const ms = await timeOne(gpu, (encoder, n) => gpu.dispatch(encoder, job, n));
    const {shape, flops, bytes} = problem;
    return {shape, ms, flops, bytes, gflops: flops / ms / 1e6, gbytes: bytes / ms / 1e6};
  } finally {
    job.release();
  }
}

// Which limit binds a measured problem, and the share of it that was reached.
export function share({flops, bytes, ms}, {copy, fma}) {
  const memoryMs = bytes / copy * 1000, computeMs = flops / fma * 1000;
  return {limit: memoryMs >= computeMs ? 'memory' : 'compute', share: Math.max(memoryMs, computeMs) / ms};
}
