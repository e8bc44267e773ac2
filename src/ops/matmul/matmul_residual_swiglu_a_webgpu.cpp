#include "ops/matmul/matmul_residual_swiglu_a.hpp"

#include "ops/matmul/matmul_tile_webgpu.hpp"

namespace tessera {
namespace {

TileProduct product_of(const MatmulResidualSwigluA::Args& args) {
  return {.y = args.y,
          .x = args.g,
          .up = args.u,
          .w = args.w,
          .residual = args.residual,
          .live = args.live,
          .order = args.order};
}

}  // namespace

void add_matmul_residual_swiglu_a_webgpu(KernelTable& table,
                                         const webgpu::Capabilities& capabilities) {
  table.add<MatmulResidualSwigluA>(
      {.name = "gate_while_loading",
       .supports =
           [=](const MatmulResidualSwigluA::Args& args, const Caps&) {
             return args.y.dim(0) != 1 && is_for_tiles(product_of(args), capabilities);
           },
       .run =
           [](Queue& queue, const MatmulResidualSwigluA::Args& args, const Tensor&) {
             record_tiles(queue, MatmulResidualSwigluA::kName, product_of(args));
           },
       .traits = {.isa = "core", .reduction_order = "webgpu.chain", .tuned = kMatmulTile}});
}

}  // namespace tessera
