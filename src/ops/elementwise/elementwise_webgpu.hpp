#pragma once

#include <string>
#include <string_view>

#include "device/kernel_table.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {

/// Tensors of an element-wise op of one or two inputs, all [M, N].
struct ElementwiseTensors {
  Tensor y, a;
  Tensor b = {};
  Tensor live = {};
};

/// Records elementwise_rows.wgsl: four values a thread where addresses allow it, else one.
void record_elementwise(Queue& queue, std::string_view op, std::string_view operation,
                        const ElementwiseTensors& tensors);

/// Adds the row of `Op`. `operation(args)` is OP of elementwise_rows.wgsl, `tensors(args)` says
/// which tensors they are.
template <typename Op>
void add_elementwise_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities,
                            std::string_view (*operation)(const typename Op::Args&),
                            ElementwiseTensors (*tensors)(const typename Op::Args&)) {
  using Args = typename Op::Args;
  table.add<Op>({
      .name = "thread_per_value",
      .supports =
          [=](const Args& args, const Caps&) {
            const ElementwiseTensors t = tensors(args);
            return fits_binding(t.y, capabilities) && fits_binding(t.a, capabilities) &&
                   fits_binding(t.b, capabilities);
          },
      .run =
          [=](Queue& queue, const Args& args, const Tensor&) {
            record_elementwise(queue, Op::kName, operation(args), tensors(args));
          },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

/// The same for an op that is one operation, of its own name.
template <typename Op>
void add_elementwise_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities,
                            ElementwiseTensors (*tensors)(const typename Op::Args&)) {
  add_elementwise_webgpu<Op>(
      table, capabilities, [](const typename Op::Args&) { return Op::kName; }, tensors);
}

}  // namespace tessera
