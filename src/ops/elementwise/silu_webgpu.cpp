#include "ops/elementwise/silu.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_silu_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_elementwise_webgpu<Silu>(table, capabilities,
                               [](const Silu::Args& args) -> ElementwiseTensors {
                                 return {args.y, args.x, {}, args.live};
                               });
}

}  // namespace tessera
