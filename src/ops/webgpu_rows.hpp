#pragma once

#include "device/kernel_table.hpp"
#include "webgpu/capabilities.hpp"

namespace tessera {

/// Fills the table with every row that runs on a WebGPU device of these capabilities: kernels, then
/// compositions.
void add_webgpu_rows(KernelTable& table, const webgpu::Capabilities& capabilities);

}  // namespace tessera
