#include "ops/elementwise/gelu.hpp"

#include "ops/elementwise/elementwise_webgpu.hpp"

namespace tessera {

void add_gelu_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  const auto tensors = [](const Gelu::Args& args) -> ElementwiseTensors {
    return {args.y, args.x, {}, args.live};
  };
  add_elementwise_webgpu<Gelu>(
      table, capabilities,
      [](const Gelu::Args& args) -> std::string_view {
        return args.kind == GeluKind::kErf ? "gelu_erf" : "gelu_tanh";
      },
      tensors);
}

}  // namespace tessera
