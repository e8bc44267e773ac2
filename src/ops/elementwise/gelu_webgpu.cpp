#include "ops/elementwise/gelu.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_gelu_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_elementwise_webgpu<Gelu>(
      table, capabilities, "gelu_tanh",
      [](const Gelu::Args& args) -> ElementwiseTensors {
        return {args.y, args.x, {}, args.live};
      },
      [](const Gelu::Args& args) { return args.kind == GeluKind::kTanh; });
}

}  // namespace tessera
