#include "ops/elementwise/swiglu.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_swiglu_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_elementwise_webgpu<Swiglu>(table, capabilities,
                                 [](const Swiglu::Args& args) -> ElementwiseTensors {
                                   return {args.y, args.gate, args.up, args.live};
                                 });
}

}  // namespace tessera
