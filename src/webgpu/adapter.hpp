#pragma once

#include <webgpu.h>

#include <string>
#include <vector>

#include "webgpu/capabilities.hpp"

namespace tessera::webgpu {

/// A GPU (or a software driver) as the implementation lists it.
struct Adapter {
  WGPUAdapter handle;  ///< lives as long as the process
  std::string name;
  WGPUAdapterType type;
  WGPULimits limits;
  Capabilities capabilities;  ///< with the adapter's full limits
};

/// Every adapter, discrete GPUs first and software last; empty where there is no driver or no
/// Vulkan loader. Found once per process.
const std::vector<Adapter>& adapters();

Capabilities capabilities_of(const WGPULimits& limits, const WGPUSupportedFeatures& features);

}  // namespace tessera::webgpu
