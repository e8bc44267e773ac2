#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/kernel_table.hpp"
#include "ops/matmul/matmul.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {

/// The rows of add_matmul_webgpu, a file each: one row of x; tiles of many.
void add_matmul_row_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities);
void add_matmul_tile_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities);

/// In the order of the kernels: y, x, w, then what there is of bias, residual and live.
inline std::vector<webgpu::Binding> bindings_of(const Matmul::Args& args) {
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.y), webgpu::read(args.x),
                                           webgpu::read(args.w)};
  for (const Tensor& optional : {args.bias, args.residual, args.live}) {
    if (optional.defined()) bindings.push_back(webgpu::read(optional));
  }
  bindings.push_back(webgpu::uniform());
  return bindings;
}

inline webgpu::Kernel matmul_kernel(std::string file, const Matmul::Args& args, int64_t x_width) {
  return {.file = std::move(file),
          .values = {{"WEIGHT", weight_value(args.w)},
                     {"WIDTH", x_width},
                     {"BIAS", int64_t{args.bias.defined()}},
                     {"RESIDUAL", int64_t{args.residual.defined()}},
                     {"LIVE", int64_t{args.live.defined()}}}};
}

inline bool is_for_matmul_kernels(const Matmul::Args& args,
                                  const webgpu::Capabilities& capabilities) {
  return args.x.dtype == DType::kF32 && ops::is_weight_type(args.w.dtype) &&
         args.order == WeightOrder::kOutIn && fits_binding(args.y, capabilities) &&
         fits_binding(args.x, capabilities) && fits_binding(args.w, capabilities) &&
         fits_binding(args.residual, capabilities);
}

}  // namespace tessera
