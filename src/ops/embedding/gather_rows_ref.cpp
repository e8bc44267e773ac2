#include "ops/embedding/gather_rows.hpp"
#include "ops/reference.hpp"

namespace tessera {

void GatherRows::validate(const Args& args) {
  ops::expect("gather_rows.table", args.table, ops::kWeightTypes, {-1, -1});
  ops::expect("gather_rows.ids", args.ids, {DType::kU32}, {-1});
  ops::expect("gather_rows.y", args.y, {DType::kF32}, {args.ids.dim(0), args.table.dim(1)});
  ops::expect_optional("gather_rows.live", args.live, {DType::kU32}, {1});
  const DTypeInfo& type = info(args.table.dtype);
  ops::require(args.table.dim(1) % type.block_size == 0, "gather_rows.table",
               "expected rows of whole {} blocks of {} values, got {} columns; store such a table "
               "in f16 or q8_0",
               type.name, type.block_size, args.table.dim(1));
}

Cost GatherRows::cost(const Args& args) {
  const DTypeInfo& type = info(args.table.dtype);
  const double row_bytes =
      static_cast<double>(args.table.dim(1)) / type.block_size * type.block_bytes;
  return {.flops = 0,
          .bytes = static_cast<double>(args.ids.dim(0)) * row_bytes + ops::bytes_of(args.ids) +
                   ops::bytes_of(args.y)};
}

void GatherRows::reference(const Args& args) {
  const ref::Values zeros(static_cast<size_t>(args.table.dim(1)), 0.0);
  for (int64_t i = 0; i < ref::live_rows(args.live, args.ids.dim(0)); ++i) {
    const int64_t id = ref::read_index(args.ids, i);
    ref::write_row(args.y, i, id < args.table.dim(0) ? ref::read_row(args.table, id) : zeros);
  }
}

}  // namespace tessera
