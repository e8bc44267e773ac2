#include "ops/quantize/convert.hpp"
#include "ops/reference.hpp"

namespace tessera {

void Convert::validate(const Args& args) {
  ops::expect("convert.x", args.x, ops::kWeightTypes, {-1, -1});
  const DTypeInfo& type = info(args.x.dtype);
  ops::require(args.x.dim(1) % type.block_size == 0, "convert.x",
               "expected rows of whole {} blocks of {} values, got {} columns; pass the weight "
               "with the shape it has in its file",
               type.name, type.block_size, args.x.dim(1));
  ops::expect("convert.y", args.y, {DType::kF32, DType::kF16, DType::kBF16},
              {args.x.dim(0), args.x.dim(1)});
}

Cost Convert::cost(const Args& args) {
  return {.flops = 0, .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.y)};
}

void Convert::reference(const Args& args) {
  for (int64_t row = 0; row < args.x.dim(0); ++row) {
    ref::write_row(args.y, row, ref::read_row(args.x, row));
  }
}

}  // namespace tessera
