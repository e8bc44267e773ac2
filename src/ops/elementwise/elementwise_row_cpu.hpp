#pragma once

#include "ops/cpu_row.hpp"
#include "ops/elementwise/elementwise_cpu.hpp"

namespace tessera {

inline ElementwiseArgs elementwise_args(const Tensor& y, const Tensor& a, const Tensor& live) {
  return {
      .y = matrix_view(y), .a = matrix_view(a), .b = {}, .live = host_data<const uint32_t>(live)};
}

inline ElementwiseArgs elementwise_args(const Tensor& y, const Tensor& a, const Tensor& b,
                                        const Tensor& live) {
  ElementwiseArgs args = elementwise_args(y, a, live);
  args.b = matrix_view(b);
  return args;
}

}  // namespace tessera
