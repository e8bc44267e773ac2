#include "ops/norm/layernorm.hpp"

#include "ops/norm/norm_webgpu.hpp"

namespace tessera {

void add_layernorm_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_norm_webgpu<Layernorm>(table, capabilities, "layer",
                             [](const Layernorm::Args& args) -> NormTensors {
                               return {args.y, args.x, args.weight, args.bias, args.live, args.eps};
                             });
}

}  // namespace tessera
