#include "ops/elementwise/elementwise_ref.hpp"
#include "ops/elementwise/silu.hpp"

namespace tessera {

void Silu::validate(const Args& args) {
  ops::expect("silu.x", args.x, {DType::kF32}, {-1, -1});
  ops::expect("silu.y", args.y, {DType::kF32}, {args.x.dim(0), args.x.dim(1)});
  ops::expect_optional("silu.live", args.live, {DType::kU32}, {1});
}

Cost Silu::cost(const Args& args) {
  return {.flops = 4 * static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.y)};
}

void Silu::reference(const Args& args) {
  ref::map_rows(args.y, args.x, args.live, ref::silu_of);
}

}  // namespace tessera
