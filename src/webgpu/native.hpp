#pragma once

#include <webgpu.h>

#include <cstdint>
#include <vector>

namespace tessera::webgpu::native {

// What we need of wgpu-native beyond the standard webgpu.h, and all of it: another implementation
// is this file written anew (docs/decisions/007-webgpu.md).

/// wgpu-native's name for the standard's WGPUFeatureName_Subgroups.
extern const WGPUFeatureName kSubgroups;

/// Every adapter there is, from an instance that lives as long as the process. Messages of the
/// implementation go to the log.
std::vector<WGPUAdapter> adapters();

/// A module without bounds checks and loop counters: its accesses must be guarded in the shader.
WGPUShaderModule make_unchecked_module(WGPUDevice device,
                                       const WGPUShaderModuleDescriptor& descriptor);

/// The number of this submission, for wait.
uint64_t submit(WGPUQueue queue, WGPUCommandBuffer commands);

/// Blocks until a submission, or with nullptr all of them, is done, and calls the callbacks that
/// are due.
void wait(WGPUDevice device, const uint64_t* submission);

/// What a tick of a timestamp query is.
double tick_ns(WGPUQueue queue);

}  // namespace tessera::webgpu::native
