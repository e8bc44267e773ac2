#include <cmath>

#include "ops/reference.hpp"
#include "ops/sample/argmax.hpp"

namespace tessera {

void Argmax::validate(const Args& args) {
  ops::expect("argmax.x", args.x, {DType::kF32}, {-1, -1});
  ops::require(args.x.dim(1) >= 1, "argmax.x",
               "expected rows of at least one value, got shape {}; an empty row has no largest",
               args.x.shape.to_string());
  ops::expect("argmax.ids", args.ids, {DType::kU32}, {args.x.dim(0)});
  ops::expect_optional("argmax.live", args.live, {DType::kU32}, {1});
}

Cost Argmax::cost(const Args& args) {
  return {.flops = static_cast<double>(args.x.shape.count()),
          .bytes = ops::bytes_of(args.x) + ops::bytes_of(args.ids)};
}

void Argmax::reference(const Args& args) {
  std::vector<uint32_t> ids;
  for (int64_t row = 0; row < ref::live_rows(args.live, args.x.dim(0)); ++row) {
    const ref::Values x = ref::read_row(args.x, row);
    size_t best = 0;
    for (size_t i = 1; i < x.size(); ++i) {
      if (x[i] > x[best] || (std::isnan(x[best]) && !std::isnan(x[i]))) best = i;
    }
    ids.push_back(static_cast<uint32_t>(best));
  }
  ref::write_indices(args.ids, 0, ids);
}

}  // namespace tessera
