#include "ops/norm/rmsnorm.hpp"

#include "ops/norm/norm_webgpu.hpp"

namespace tessera {

void add_rmsnorm_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_norm_webgpu<Rmsnorm>(table, capabilities, "rms",
                           [](const Rmsnorm::Args& args) -> NormTensors {
                             return {args.y, args.x, args.weight, {}, args.live, args.eps};
                           });
}

}  // namespace tessera
