#include "webgpu/native.hpp"

#include <wgpu.h>

#include "base/log.hpp"
#include "webgpu/handle.hpp"

namespace tessera::webgpu::native {

const WGPUFeatureName kSubgroups = static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup);

std::vector<WGPUAdapter> adapters() {
  wgpuSetLogCallback([](WGPULogLevel, WGPUStringView message,
                        void*) { log(LogLevel::kDebug, "webgpu: {}", text(message)); },
                     nullptr);
  wgpuSetLogLevel(WGPULogLevel_Error);
  WGPUInstanceExtras extras = {};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  // The GL backend would list the same GPUs a second time, with less on offer.
  extras.backends = WGPUInstanceBackend_Primary;
  WGPUInstanceDescriptor descriptor = {};
  descriptor.nextInChain = &extras.chain;
  // Kept for the process: adapters and devices refer to it.
  static const WGPUInstance instance = wgpuCreateInstance(&descriptor);
  if (instance == nullptr) return {};
  std::vector<WGPUAdapter> found(wgpuInstanceEnumerateAdapters(instance, nullptr, nullptr));
  wgpuInstanceEnumerateAdapters(instance, nullptr, found.data());
  return found;
}

WGPUShaderModule make_unchecked_module(WGPUDevice device,
                                       const WGPUShaderModuleDescriptor& descriptor) {
  return wgpuDeviceCreateShaderModuleTrusted(device, &descriptor, WGPUShaderRuntimeChecks_None);
}

uint64_t submit(WGPUQueue queue, WGPUCommandBuffer commands) {
  return wgpuQueueSubmitForIndex(queue, 1, &commands);
}

void wait(WGPUDevice device, const uint64_t* submission) {
  wgpuDevicePoll(device, true, submission);
}

double tick_ns(WGPUQueue queue) {
  return static_cast<double>(wgpuQueueGetTimestampPeriod(queue));
}

}  // namespace tessera::webgpu::native
