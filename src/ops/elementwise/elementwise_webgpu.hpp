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

/// Adds the row of `Op`. `operation` is OP of elementwise_rows.wgsl, `tensors(args)` says which
/// tensors they are, and `wanted(args)`, if given, which arguments it is for.
template <typename Op>
void add_elementwise_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities,
                            std::string_view operation,
                            ElementwiseTensors (*tensors)(const typename Op::Args&),
                            bool (*wanted)(const typename Op::Args&) = nullptr) {
  using Args = typename Op::Args;
  table.add<Op>({
      .name = "thread_per_value",
      .supports =
          [=](const Args& args, const Caps&) {
            const ElementwiseTensors t = tensors(args);
            return (!wanted || wanted(args)) && fits_binding(t.y, capabilities) &&
                   fits_binding(t.a, capabilities) && fits_binding(t.b, capabilities);
          },
      .run = [=](Queue& queue, const Args& args,
                 const Tensor&) { record_elementwise(queue, Op::kName, operation, tensors(args)); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
