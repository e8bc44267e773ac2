// One WebGPU device, and what running a kernel on it takes.

const FEATURES = ['shader-f16', 'subgroups'];
const LIMITS = ['maxStorageBufferBindingSize', 'maxBufferSize', 'maxComputeWorkgroupStorageSize',
                'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupsPerDimension',
                'maxStorageBuffersPerShaderStage'];
const SOURCES = new URL('../src/ops/', import.meta.url);

// Throws an Error for people where there is no WebGPU.
export async function openGpu() {
  if (!window.isSecureContext) {
    throw new Error('Browsers offer WebGPU only to pages from https:// or http://localhost: open this ' +
                    'page from one of them.');
  }
  if (!navigator.gpu) {
    throw new Error('This browser has no WebGPU. Chrome and Edge from 113, Firefox from 141 and Safari ' +
                    'from 26 have it on most systems; in Chrome on Linux it may need ' +
                    'chrome://flags/#enable-unsafe-webgpu.');
  }
  const adapter = await navigator.gpu.requestAdapter({powerPreference: 'high-performance'});
  if (!adapter) {
    throw new Error('This browser has WebGPU but found no adapter for it. chrome://gpu (or ' +
                    'about:support) says why: often a driver that is missing or on a blocklist.');
  }
  const features = FEATURES.filter((name) => adapter.features.has(name));
  const limits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({requiredFeatures: features, requiredLimits: limits});
  return new Gpu(adapter, device, features, limits);
}

class Gpu {
  constructor(adapter, device, features, limits) {
    Object.assign(this, {device, features, limits, isLost: false});
    const info = adapter.info ?? {};
    // Browsers tell the description only to developers.
    this.name = info.description || [info.vendor, info.architecture].filter(Boolean).join(' ') ||
        'unnamed adapter';
    this.subgroupSizes = info.subgroupMinSize ? [info.subgroupMinSize, info.subgroupMaxSize] : null;
    this.modules = new Map();
    this.loss = device.lost.then(({reason, message}) => {
      this.isLost = true;
      throw new Error(`the device was lost (${reason || 'unknown'}): ${message}`);
    });
    this.loss.catch(() => {});  // told by whatever waits
  }

  // Promises of a lost device may never settle.
  settle(promise) {
    return Promise.race([promise, this.loss]);
  }

  // `call`, and what it makes the device report as an Error.
  async guarded(call) {
    const filters = ['validation', 'out-of-memory', 'internal'];
    filters.forEach((filter) => this.device.pushErrorScope(filter));
    let result, thrown;
    try {
      result = await this.settle(call());
    } catch (error) {
      thrown = error;
    }
    const reports = await this.settle(Promise.all(filters.map(() => this.device.popErrorScope())));
    const reported = reports.find(Boolean);
    if (reported) throw new Error(reported.message);
    if (thrown) throw thrown;
    return result;
  }

  // A file below src/ops, compiled once: {module, messages}. `edit` changes its text.
  async load(file, edit = (text) => text) {
    if (!this.modules.has(file)) {
      const response = await fetch(new URL(file, SOURCES));
      if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
      this.modules.set(file, await this.compile(file, edit(await response.text())));
    }
    return this.modules.get(file);
  }

  async compile(label, code) {
    this.device.pushErrorScope('validation');  // told better by the messages
    const module = this.device.createShaderModule({code, label});
    this.device.popErrorScope();
    const info = await this.settle(module.getCompilationInfo());
    const text = (m) => `${label}:${m.lineNum}:${m.linePos} ${m.type}: ${m.message}`;
    const errors = info.messages.filter((m) => m.type === 'error');
    if (errors.length > 0) throw new Error(errors.map(text).join('\n'));
    return {module, messages: info.messages.map(text)};
  }

  pipeline(module, entryPoint) {
    return this.guarded(() => this.device.createComputePipelineAsync(
        {layout: 'auto', compute: {module, entryPoint}}));
  }

  buffer(contents, usage) {
    const size = Math.ceil(contents.byteLength / 4) * 4;
    const buffer = this.device.createBuffer({size, usage, mappedAtCreation: true});
    new contents.constructor(buffer.getMappedRange(), 0, contents.length).set(contents);
    buffer.unmap();
    return buffer;
  }

  // Buffers and bind group of a problem (kernels.js). `poison` fills what is to be written with NaN.
  async prepare(pipeline, problem, {poison, bindings = problem.bindings}) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC;
    const buffers = [];
    const release = () => buffers.forEach((buffer) => buffer.destroy());
    try {
      const group = await this.guarded(() => {
        for (const data of bindings) {
          buffers.push(typeof data !== 'number' ? this.buffer(data, usage)
                       : poison ? this.buffer(new Float32Array(data).fill(NaN), usage)
                       : this.device.createBuffer({size: 4 * data, usage}));
        }
        buffers.push(this.buffer(Uint32Array.from(problem.uniform), GPUBufferUsage.UNIFORM));
        return this.device.createBindGroup({
          layout: pipeline.getBindGroupLayout(0),
          entries: buffers.map((buffer, binding) => ({binding, resource: {buffer}})),
        });
      });
      return {pipeline, group, buffers, release, grid: fold(problem, this.limits)};
    } catch (error) {
      release();
      throw error;
    }
  }

  // `n` dispatches in one pass.
  dispatch(encoder, {pipeline, group, grid}, n = 1) {
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < n; ++i) pass.dispatchWorkgroups(...grid);
    pass.end();
  }

  // Runs a prepared problem once and returns, for each of [binding, [index, ...]], those floats.
  async runAndRead(job, wanted) {
    const size = wanted.reduce((sum, [, indices]) => sum + 4 * indices.length, 0);
    const staging = this.device.createBuffer(
        {size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
    try {
      await this.guarded(() => {
        const encoder = this.device.createCommandEncoder();
        this.dispatch(encoder, job);
        let at = 0;
        for (const [binding, indices] of wanted) {
          for (let i = 0, n; i < indices.length; i += n) {  // runs of neighbours at once
            for (n = 1; indices[i + n] === indices[i] + n; ++n);
            encoder.copyBufferToBuffer(job.buffers[binding], 4 * indices[i], staging, at, 4 * n);
            at += 4 * n;
          }
        }
        this.device.queue.submit([encoder.finish()]);
        return staging.mapAsync(GPUMapMode.READ);
      });
      const floats = new Float32Array(staging.getMappedRange().slice(0));
      let at = 0;
      return wanted.map(([, indices]) => floats.subarray(at, at += indices.length));
    } finally {
      staging.destroy();
    }
  }

  // The milliseconds that the commands of `encode(encoder)` take, from submit to done.
  async time(encode) {
    const encoder = this.device.createCommandEncoder();
    encode(encoder);
    const commands = encoder.finish();
    const begin = performance.now();
    this.device.queue.submit([commands]);
    await this.settle(this.device.queue.onSubmittedWorkDone());
    return performance.now() - begin;
  }
}

// The grid of a problem where a dimension takes only so many workgroups. Kernels number their groups
// z, y, x, whatever the three are, unless y keeps its meaning.
function fold({grid: [x, y = 1], keepsY}, {maxComputeWorkgroupsPerDimension: limit}) {
  if (x <= limit && y <= limit) return [x, y];
  if (keepsY) {
    const z = Math.ceil(x / limit);
    return [Math.ceil(x / z), y, z];
  }
  const nRows = Math.ceil(x * y / limit);
  return [Math.ceil(x * y / nRows), nRows];
}
