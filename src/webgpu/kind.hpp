#pragma once

#include <functional>

#include "device/registry.hpp"
#include "webgpu/capabilities.hpp"

namespace tessera::webgpu {

/// "webgpu" for the registry; the ops room supplies the rows. Lists nothing where there is no
/// driver or no Vulkan loader.
DeviceKind device_kind(std::function<void(KernelTable&, const Capabilities&)> add_rows);

}  // namespace tessera::webgpu
