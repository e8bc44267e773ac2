#include "webgpu/adapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "webgpu/handle.hpp"
#include "webgpu/native.hpp"

namespace tessera::webgpu {
namespace {

bool has(std::span<const WGPUFeatureName> features, WGPUFeatureName wanted) {
  return std::find(features.begin(), features.end(), wanted) != features.end();
}

int rank(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU:
      return 0;
    case WGPUAdapterType_IntegratedGPU:
      return 1;
    case WGPUAdapterType_CPU:
      return 3;
    default:
      return 2;
  }
}

Adapter describe(WGPUAdapter handle) {
  Adapter adapter = {.handle = handle, .name = "", .type = {}, .limits = {}, .capabilities = {}};
  WGPUAdapterInfo info = {};
  wgpuAdapterGetInfo(handle, &info);
  adapter.name = text(info.device);
  adapter.type = info.adapterType;
  wgpuAdapterInfoFreeMembers(info);
  wgpuAdapterGetLimits(handle, &adapter.limits);
  adapter.limits.nextInChain = nullptr;
  WGPUSupportedFeatures features = {};
  wgpuAdapterGetFeatures(handle, &features);
  adapter.capabilities = capabilities_of(adapter.limits, features);
  wgpuSupportedFeaturesFreeMembers(features);
  return adapter;
}

std::vector<Adapter> find_adapters() {
  std::vector<Adapter> found;
  for (WGPUAdapter handle : native::adapters()) found.push_back(describe(handle));
  std::stable_sort(found.begin(), found.end(),
                   [](const Adapter& a, const Adapter& b) { return rank(a.type) < rank(b.type); });
  return found;
}

}  // namespace

Capabilities capabilities_of(const WGPULimits& limits, const WGPUSupportedFeatures& features) {
  const std::span list(features.features, features.featureCount);
  Capabilities result;
  result.f16 = has(list, WGPUFeatureName_ShaderF16);
  result.subgroups = has(list, WGPUFeatureName_Subgroups) || has(list, native::kSubgroups);
  result.timestamps = has(list, WGPUFeatureName_TimestampQuery);
  // A binding's size is u32 in shaders; wgpu-native wants multiples of 4.
  result.max_binding_bytes =
      static_cast<int64_t>(std::min<uint64_t>(limits.maxStorageBufferBindingSize, 0xffff'fffcu));
  result.max_buffer_bytes =
      static_cast<int64_t>(std::min<uint64_t>(limits.maxBufferSize, INT64_MAX));
  result.max_workgroup_bytes = limits.maxComputeWorkgroupStorageSize;
  result.max_workgroup_threads = limits.maxComputeInvocationsPerWorkgroup;
  result.max_grid = limits.maxComputeWorkgroupsPerDimension;
  result.max_storage_buffers = static_cast<int>(limits.maxStorageBuffersPerShaderStage);
  result.storage_alignment_bytes = limits.minStorageBufferOffsetAlignment;
  result.uniform_alignment_bytes = limits.minUniformBufferOffsetAlignment;
  return result;
}

std::vector<std::string> Capabilities::to_strings() const {
  std::vector<std::string> result = {"core"};
  if (f16) result.emplace_back("f16");
  if (subgroups) result.emplace_back("subgroups");
  if (large_bindings()) result.emplace_back("large bindings");
  if (timestamps) result.emplace_back("timestamps");
  result.push_back(fmt::format("binding {} MiB", max_binding_bytes >> 20));
  result.push_back(fmt::format("buffer {} MiB", max_buffer_bytes >> 20));
  result.push_back(fmt::format("workgroup memory {} KiB", max_workgroup_bytes >> 10));
  result.push_back(fmt::format("{} threads a workgroup", max_workgroup_threads));
  result.push_back(fmt::format("{} workgroups a dimension", max_grid));
  result.push_back(fmt::format("{} storage buffers", max_storage_buffers));
  return result;
}

const std::vector<Adapter>& adapters() {
  static const std::vector<Adapter> found = find_adapters();
  return found;
}

}  // namespace tessera::webgpu
