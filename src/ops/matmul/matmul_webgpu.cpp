#include "ops/matmul/matmul_webgpu.hpp"

namespace tessera {

void add_matmul_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_matmul_row_webgpu(table, capabilities);
  add_matmul_tile_webgpu(table, capabilities);
}

}  // namespace tessera
