#include "ops/attention/attention.hpp"

#include "device/kernel_table.hpp"
#include "ops/attention/attention_rows_webgpu.hpp"

namespace tessera {

void add_attention_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_attention_rows<Attention>(table, capabilities);
}

}  // namespace tessera
