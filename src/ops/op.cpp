#include "ops/op.hpp"

#include <algorithm>

namespace tessera::ops {

const std::initializer_list<DType> kWeightTypes = {
    DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0, DType::kQ4_1,
    DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,
    DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

bool is_weight_type(DType dtype) {
  return std::find(kWeightTypes.begin(), kWeightTypes.end(), dtype) != kWeightTypes.end();
}

double bytes_of(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  const DTypeInfo& type = info(tensor.dtype);
  return static_cast<double>(tensor.shape.count()) / type.block_size * type.block_bytes;
}

namespace {

std::string list(std::initializer_list<DType> dtypes) {
  std::string text;
  for (const DType dtype : dtypes) {
    text += text.empty() ? "" : ", ";
    text += name(dtype);
  }
  return text;
}

std::string pattern(std::initializer_list<int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    text += text.size() > 1 ? ", " : "";
    text += size < 0 ? "*" : std::to_string(size);
  }
  return text + "]";
}

}  // namespace

void expect(std::string_view what, const Tensor& tensor, std::initializer_list<DType> dtypes,
            std::initializer_list<int64_t> shape) {
  require(tensor.defined(), what, "expected a tensor of shape {}, got none", pattern(shape));
  require(std::find(dtypes.begin(), dtypes.end(), tensor.dtype) != dtypes.end(), what,
          "expected {}, got {}", list(dtypes), name(tensor.dtype));
  bool fits = tensor.shape.rank() == static_cast<int>(shape.size());
  int i = 0;
  for (const int64_t size : shape) {
    fits = fits && (size < 0 || tensor.dim(i) == size);
    ++i;
  }
  require(fits, what, "expected shape {}, got {}", pattern(shape), tensor.shape.to_string());
}

void expect_optional(std::string_view what, const Tensor& tensor,
                     std::initializer_list<DType> dtypes, std::initializer_list<int64_t> shape) {
  if (tensor.defined()) expect(what, tensor, dtypes, shape);
}

void AliasCheck::add(std::string_view name, const Tensor& tensor, Access access) {
  const Range added = {name, tensor.buffer, tensor.offset_bytes,
                       tensor.offset_bytes + tensor.span_bytes(), access};
  for (int i = 0; i < n_ranges; ++i) {
    const Range& other = ranges[static_cast<size_t>(i)];
    const bool written = access != Access::kRead || other.access != Access::kRead;
    const bool shared =
        other.buffer == added.buffer && other.begin < added.end && added.begin < other.end;
    require(!(written && shared), op, "{} and {} share memory and one of them is written", name,
            other.name);
  }
  ranges[static_cast<size_t>(n_ranges++)] = added;
}

}  // namespace tessera::ops
