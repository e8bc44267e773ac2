// Runs one entry of a WGSL file of Tessera once. `storage` are the typed arrays of its bindings in their
// order, `uniform` its u32 words, `grid` the workgroups to dispatch. Returns the storage buffers, on the
// device; copy one into a buffer with MAP_READ to look at it. A program that runs it again keeps the
// pipeline, the buffers and the bind group.
export function runKernel(device, code, entryPoint, storage, uniform, grid) {
  const module = device.createShaderModule({code});
  const pipeline = device.createComputePipeline({layout: 'auto', compute: {module, entryPoint}});
  const {STORAGE, UNIFORM, COPY_SRC, COPY_DST} = GPUBufferUsage;
  const upload = (data, usage) => {
    const buffer = device.createBuffer({size: data.byteLength, usage: usage | COPY_DST});
    device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  };
  const buffers = storage.map((data) => upload(data, STORAGE | COPY_SRC));
  const entries = [...buffers, upload(Uint32Array.from(uniform), UNIFORM)].map(
      (buffer, binding) => ({binding, resource: {buffer}}));
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({layout: pipeline.getBindGroupLayout(0), entries}));
  pass.dispatchWorkgroups(...grid);
  pass.end();
  device.queue.submit([encoder.finish()]);
  return buffers;
}
