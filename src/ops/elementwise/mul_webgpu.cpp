#include "ops/elementwise/mul.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_mul_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  add_elementwise_webgpu<Mul>(table, capabilities, [](const Mul::Args& args) -> ElementwiseTensors {
    return {args.y, args.a, args.b, args.live};
  });
}

}  // namespace tessera
