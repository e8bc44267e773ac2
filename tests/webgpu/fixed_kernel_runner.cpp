#include "fixed_kernel_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "webgpu/handle.hpp"
#include "webgpu/native.hpp"
#include "webgpu/wgsl.hpp"

namespace tessera::webgpu {
namespace {

// The alignment that every implementation takes for the start of a binding, and as many bytes after
// the binding at least.
constexpr size_t kGuardBytes = 256;
constexpr uint32_t kPoison = 0x7fc0dead;  // a NaN

/// The values between two guard bands.
Bytes guarded(const Bytes& values) {
  Bytes all(2 * kGuardBytes + (values.size() + 3) / 4 * 4);
  for (size_t i = 0; i < all.size(); i += 4) std::memcpy(&all[i], &kPoison, 4);
  std::copy(values.begin(), values.end(), all.begin() + kGuardBytes);
  return all;
}

BufferHandle make_buffer(WGPUDevice device, size_t size_bytes, WGPUBufferUsage usage) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = size_bytes;
  descriptor.usage = usage;
  return BufferHandle(wgpuDeviceCreateBuffer(device, &descriptor));
}

BufferHandle upload(const Context& context, const Bytes& bytes, WGPUBufferUsage usage) {
  BufferHandle buffer = make_buffer(context.device(), bytes.size(), usage);
  wgpuQueueWriteBuffer(context.queue(), buffer.get(), 0, bytes.data(), bytes.size());
  return buffer;
}

Bytes download(WGPUDevice device, WGPUBuffer staging, size_t size_bytes) {
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void*, void*) {
    EXPECT_EQ(status, WGPUMapAsyncStatus_Success) << text(message);
  };
  wgpuBufferMapAsync(staging, WGPUMapMode_Read, 0, size_bytes, callback);
  native::wait(device, nullptr);
  Bytes bytes(size_bytes);
  const void* mapped = wgpuBufferGetConstMappedRange(staging, 0, size_bytes);
  EXPECT_NE(mapped, nullptr);
  if (mapped != nullptr) std::memcpy(bytes.data(), mapped, size_bytes);
  wgpuBufferUnmap(staging);
  return bytes;
}

}  // namespace

FixedKernelRunner::FixedKernelRunner(const ContextOptions& options)
    : runtime_checks_(options.runtime_checks), context_(0, options) {}

FixedKernelRunner::~FixedKernelRunner() {
  for (const auto& [label, pipeline] : pipelines_) wgpuComputePipelineRelease(pipeline);
}

WGPUComputePipeline FixedKernelRunner::pipeline(const FixedKernel& kernel) {
  WGPUComputePipeline& made = pipelines_[kernel.label()];
  if (made != nullptr) return made;
  const std::string code = native_wgsl({.file = std::string(kernel.file)});
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = view(code);
  WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  module_descriptor.nextInChain = &source.chain;
  module_descriptor.label = view(kernel.file);
  const ShaderModule module(
      runtime_checks_ ? wgpuDeviceCreateShaderModule(context_.device(), &module_descriptor)
                      : native::make_unchecked_module(context_.device(), module_descriptor));
  WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  descriptor.compute.module = module.get();
  descriptor.compute.entryPoint = view(kernel.entry);
  made = wgpuDeviceCreateComputePipeline(context_.device(), &descriptor);
  context_.take_error().value();
  return made;
}

std::vector<Bytes> FixedKernelRunner::run(const FixedKernel& kernel,
                                          const std::vector<uint32_t>& uniform,
                                          const std::vector<Bytes>& bindings, const Grid& grid) {
  const WGPUDevice device = context_.device();
  const WGPUComputePipeline compiled = pipeline(kernel);
  std::vector<Bytes> before;
  std::vector<BufferHandle> buffers, staging;
  std::vector<WGPUBindGroupEntry> entries;
  for (const Bytes& values : bindings) {
    before.push_back(guarded(values));
    buffers.push_back(
        upload(context_, before.back(),
               WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst));
    staging.push_back(make_buffer(device, before.back().size(),
                                  WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst));
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<uint32_t>(entries.size());
    entry.buffer = buffers.back().get();
    entry.offset = kGuardBytes;
    entry.size = values.size();
    entries.push_back(entry);
  }
  const BufferHandle words =
      upload(context_, bytes_of(uniform), WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
  WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
  entry.binding = static_cast<uint32_t>(entries.size());
  entry.buffer = words.get();
  entry.size = uniform.size() * 4;
  entries.push_back(entry);

  const BindGroupLayout layout(wgpuComputePipelineGetBindGroupLayout(compiled, 0));
  WGPUBindGroupDescriptor group_descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  group_descriptor.layout = layout.get();
  group_descriptor.entryCount = entries.size();
  group_descriptor.entries = entries.data();
  const BindGroup group(wgpuDeviceCreateBindGroup(device, &group_descriptor));
  context_.take_error().value();

  const CommandEncoder encoder(wgpuDeviceCreateCommandEncoder(device, nullptr));
  {
    const ComputePass pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
    wgpuComputePassEncoderSetPipeline(pass.get(), compiled);
    wgpuComputePassEncoderSetBindGroup(pass.get(), 0, group.get(), 0, nullptr);
    wgpuComputePassEncoderDispatchWorkgroups(pass.get(), static_cast<uint32_t>(grid.x),
                                             static_cast<uint32_t>(grid.y),
                                             static_cast<uint32_t>(grid.z));
    wgpuComputePassEncoderEnd(pass.get());
  }
  for (size_t i = 0; i < bindings.size(); ++i) {
    wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), buffers[i].get(), 0, staging[i].get(), 0,
                                         before[i].size());
  }
  const CommandBuffer commands(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  const WGPUCommandBuffer raw_commands = commands.get();
  wgpuQueueSubmit(context_.queue(), 1, &raw_commands);

  std::vector<Bytes> results;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Bytes after = download(device, staging[i].get(), before[i].size());
    const size_t begin = kGuardBytes, end = kGuardBytes + bindings[i].size();
    const bool written = kernel.bindings[i].written;
    for (size_t at = 0; at < after.size(); ++at) {
      if (after[at] != before[i][at] && !(written && at >= begin && at < end)) {
        ADD_FAILURE() << kernel.label() << " wrote to byte "
                      << static_cast<int64_t>(at) - static_cast<int64_t>(begin) << " of "
                      << kernel.bindings[i].name << ", which has " << bindings[i].size();
        break;
      }
    }
    results.emplace_back(after.begin() + static_cast<std::ptrdiff_t>(begin),
                         after.begin() + static_cast<std::ptrdiff_t>(end));
  }
  context_.take_error().value();
  return results;
}

}  // namespace tessera::webgpu
