#pragma once

#include "cpu/queue.hpp"
#include "device/kernel_table.hpp"

namespace tessera {

/// The f64 reference as a row of the CPU, run by one thread: for bring-up and tests.
template <typename Op>
void add_reference_row(KernelTable& table) {
  using Args = typename Op::Args;
  table.add<Op>({
      .name = "reference",
      .supports = [](const Args&, const Caps&) { return true; },
      .run =
          [](Queue& queue, const Args& args, const Tensor&) {
            cpu::cpu_queue(queue).record<Args>(
                Op::kName,
                [](const Args& recorded, Team& team) noexcept {
                  for (int64_t c; (c = team.next_chunk(1)) < 1;) Op::reference(recorded);
                },
                args);
          },
      .traits = {.isa = "portable", .reference = true, .reduction_order = "f64"},
  });
}

}  // namespace tessera
