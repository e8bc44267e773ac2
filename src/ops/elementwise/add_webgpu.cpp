#include "ops/elementwise/add.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_add_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_elementwise_webgpu<Add>(table, capabilities, [](const Add::Args& args) -> ElementwiseTensors {
    return {args.y, args.a, args.b, args.live};
  });
}

}  // namespace tessera
