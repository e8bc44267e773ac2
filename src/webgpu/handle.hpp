#pragma once

#include <webgpu.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace tessera::webgpu {

/// Owns a reference to an object of the C API.
template <auto kRelease>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};
template <typename Raw, auto kRelease>
using Handle = std::unique_ptr<std::remove_pointer_t<Raw>, Release<kRelease>>;

using BindGroup = Handle<WGPUBindGroup, wgpuBindGroupRelease>;
using BindGroupLayout = Handle<WGPUBindGroupLayout, wgpuBindGroupLayoutRelease>;
using BufferHandle = Handle<WGPUBuffer, wgpuBufferRelease>;
using CommandBuffer = Handle<WGPUCommandBuffer, wgpuCommandBufferRelease>;
using CommandEncoder = Handle<WGPUCommandEncoder, wgpuCommandEncoderRelease>;
using ComputePass = Handle<WGPUComputePassEncoder, wgpuComputePassEncoderRelease>;
using ComputePipeline = Handle<WGPUComputePipeline, wgpuComputePipelineRelease>;
using DeviceHandle = Handle<WGPUDevice, wgpuDeviceRelease>;
using PipelineLayout = Handle<WGPUPipelineLayout, wgpuPipelineLayoutRelease>;
using QuerySet = Handle<WGPUQuerySet, wgpuQuerySetRelease>;
using QueueHandle = Handle<WGPUQueue, wgpuQueueRelease>;
using ShaderModule = Handle<WGPUShaderModule, wgpuShaderModuleRelease>;

inline WGPUStringView view(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string text(WGPUStringView view) {
  if (view.data == nullptr) return "";
  return view.length == WGPU_STRLEN ? std::string(view.data) : std::string(view.data, view.length);
}

}  // namespace tessera::webgpu
