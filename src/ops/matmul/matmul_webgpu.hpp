#pragma once

#include "device/kernel_table.hpp"
#include "webgpu/capabilities.hpp"

namespace tessera {

/// The rows of add_matmul_webgpu, a file each: few rows of x; tiles of many.
void add_matmul_row_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities);
void add_matmul_tile_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities);

}  // namespace tessera
