#include "ops/cases.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"

namespace tessera {

namespace fill {

Fill normal(double deviation, double mean) {
  return [=](std::span<double> out, CaseRandom& random) {
    std::normal_distribution<double> draw(mean, deviation);
    for (double& value : out) value = draw(random);
  };
}

Fill uniform(double low, double high) {
  return [=](std::span<double> out, CaseRandom& random) {
    std::uniform_real_distribution<double> draw(low, high);
    for (double& value : out) value = draw(random);
  };
}

Fill constant(double value) {
  return [=](std::span<double> out, CaseRandom&) { std::fill(out.begin(), out.end(), value); };
}

Fill integers(int64_t low, int64_t high) {
  return [=](std::span<double> out, CaseRandom& random) {
    std::uniform_int_distribution<int64_t> draw(low, high);
    for (double& value : out) value = static_cast<double>(draw(random));
  };
}

Fill values(std::vector<double> given) {
  return [given = std::move(given)](std::span<double> out, CaseRandom&) {
    if (given.size() != out.size()) {
      fail(ErrorKind::kInvalidArgument, "fill::values", "expected {} values, got {}", out.size(),
           given.size());
    }
    std::copy(given.begin(), given.end(), out.begin());
  };
}

Fill sprinkled(Fill base, std::vector<double> specials, int every) {
  return [=](std::span<double> out, CaseRandom& random) {
    base(out, random);
    for (double& value : out) {
      if (random() % static_cast<uint64_t>(every) == 0) {
        value = specials[random() % specials.size()];
      }
    }
  };
}

}  // namespace fill

namespace bound {

Bound exact() {
  return [](const CaseInputs&, std::string_view, std::span<const double> reference) {
    return std::vector<double>(reference.size(), 0.0);
  };
}

Bound relative(double units, double absolute) {
  return [=](const CaseInputs&, std::string_view, std::span<const double> reference) {
    std::vector<double> allowed(reference.size());
    for (size_t i = 0; i < allowed.size(); ++i) {
      allowed[i] = units * kUnitF32 * std::abs(reference[i]) + absolute;
    }
    return allowed;
  };
}

}  // namespace bound

const CaseInputs::Input& CaseInputs::operator[](std::string_view name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    fail(ErrorKind::kInvalidArgument, std::string(name), "the case has no such input");
  }
  return found->second;
}

namespace {

template <typename T>
void put_integers(std::span<const double> values, std::byte* target) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<T>(static_cast<int64_t>(values[i]));
    std::memcpy(target + i * sizeof value, &value, sizeof value);
  }
}

/// The row layout of ops/quantize/quantize_rows.hpp, written from its text.
void put_q8(std::span<const float> values, std::byte* target) {
  const size_t n_blocks = values.size() / 32;
  for (size_t b = 0; b < n_blocks; ++b) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[b * 32 + i]));
    const float scale = largest / 127;
    int total = 0;
    for (size_t i = 0; i < 32; ++i) {
      const float steps = largest > 0 ? values[b * 32 + i] * (127 / largest) : 0;
      const auto q = static_cast<int8_t>(std::nearbyint(steps));
      total += q;
      std::memcpy(target + n_blocks * 8 + b * 32 + i, &q, 1);
    }
    const float sum = scale * static_cast<float>(total);
    std::memcpy(target + b * 4, &scale, 4);
    std::memcpy(target + (n_blocks + b) * 4, &sum, 4);
  }
}

/// Random bits with scales of the size of `scale`. `half_offsets`: where a block keeps its binary16
/// scales.
void put_random_blocks(DType dtype, int64_t n, double scale, CaseRandom& random,
                       std::byte* target) {
  const DTypeInfo& type = info(dtype);
  std::vector<size_t> half_offsets;
  double divisor = 1;  // from the spread of the values to the scale of a block
  switch (dtype) {
    case DType::kQ5_1:
      half_offsets = {0, 2};
      divisor = 16;
      break;
    case DType::kQ2_K:
      half_offsets = {offsetof(BlockQ2_K, d), offsetof(BlockQ2_K, dmin)};
      divisor = 16;
      break;
    case DType::kQ3_K:
      half_offsets = {offsetof(BlockQ3_K, d)};
      divisor = 64;
      break;
    case DType::kQ4_K:
      half_offsets = {offsetof(BlockQ4_K, d), offsetof(BlockQ4_K, dmin)};
      divisor = 256;
      break;
    case DType::kQ5_K:
      half_offsets = {offsetof(BlockQ5_K, d), offsetof(BlockQ5_K, dmin)};
      divisor = 512;
      break;
    case DType::kQ6_K:
      half_offsets = {offsetof(BlockQ6_K, d)};
      divisor = 1024;
      break;
    default:  // int4_flat: nothing but nibbles
      break;
  }
  const int64_t n_bytes = n / type.block_size * type.block_bytes;
  for (int64_t i = 0; i < n_bytes; ++i) target[i] = static_cast<std::byte>(random() >> 56);
  std::uniform_real_distribution<double> draw(0.5, 1.5);
  for (int64_t at = 0; at < n_bytes; at += type.block_bytes) {
    for (size_t i = 0; i < half_offsets.size(); ++i) {
      const double sign = i == 0 && random() % 4 == 0 ? -1 : 1;
      const uint16_t half = f32_to_f16(static_cast<float>(sign * draw(random) * scale / divisor));
      std::memcpy(target + at + static_cast<int64_t>(half_offsets[i]), &half, sizeof half);
    }
  }
}

double root_mean_square(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

void put_row(DType dtype, std::span<const double> values, CaseRandom& random, std::byte* target) {
  const auto n = static_cast<int64_t>(values.size());
  switch (dtype) {
    case DType::kF64:
      std::memcpy(target, values.data(), values.size_bytes());
      return;
    case DType::kU32:
      put_integers<uint32_t>(values, target);
      return;
    case DType::kI32:
      put_integers<int32_t>(values, target);
      return;
    case DType::kI8:
      put_integers<int8_t>(values, target);
      return;
    default:
      break;
  }
  const std::vector<float> rounded(values.begin(), values.end());
  switch (dtype) {
    case DType::kF32:
      std::memcpy(target, rounded.data(), rounded.size() * sizeof(float));
      return;
    case DType::kQ8:
      put_q8(rounded, target);
      return;
    case DType::kF16:
    case DType::kBF16:
      encode(dtype, rounded.data(), target, n);
      return;
    default:
      if (can_encode(dtype)) {
        encode(dtype, rounded.data(), target, n);
      } else {
        put_random_blocks(dtype, n, root_mean_square(values), random, target);
      }
  }
}

}  // namespace

std::vector<std::byte> make_bytes(const Tensor& tensor, const Fill& fill, uint64_t seed) {
  CaseRandom random(seed);
  const int64_t columns = tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
  std::vector<double> values(static_cast<size_t>(tensor.shape.count()));
  fill(values, random);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.span_bytes()), std::byte{0xff});
  if (values.empty()) return bytes;
  for_each_row(tensor, [&](int64_t i, int64_t offset) {
    put_row(
        tensor.dtype,
        std::span(values).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)),
        random, bytes.data() + offset);
  });
  return bytes;
}

namespace {

void decode_row(DType dtype, const std::byte* source, std::span<double> out) {
  const auto n = static_cast<int64_t>(out.size());
  const auto plain = [&]<typename T>(T) {
    for (size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, source + i * sizeof(T), sizeof(T));
      out[i] = static_cast<double>(value);
    }
  };
  switch (dtype) {
    case DType::kF64:
      return plain(double{});
    case DType::kF32:
      return plain(float{});
    case DType::kU32:
      return plain(uint32_t{});
    case DType::kI32:
      return plain(int32_t{});
    case DType::kI8:
      return plain(int8_t{});
    case DType::kInt4Flat: {
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<double>(static_cast<uint8_t>(source[i / 2]) >> (4 * (i % 2)) & 15);
      }
      return;
    }
    case DType::kQ8: {
      const size_t n_blocks = out.size() / 32;
      for (size_t i = 0; i < out.size(); ++i) {
        float scale;
        std::memcpy(&scale, source + i / 32 * 4, 4);
        out[i] = static_cast<double>(scale) *
                 static_cast<double>(static_cast<int8_t>(source[n_blocks * 8 + i]));
      }
      return;
    }
    default: {
      std::vector<float> values(out.size());
      dequantize(dtype, source, values.data(), n);
      std::copy(values.begin(), values.end(), out.begin());
    }
  }
}

}  // namespace

std::vector<double> decode(const Tensor& tensor, std::span<const std::byte> bytes) {
  std::vector<double> values(static_cast<size_t>(tensor.shape.count()));
  if (values.empty()) return values;
  const auto columns = static_cast<size_t>(tensor.shape.rank() == 0 ? 1 : tensor.shape[-1]);
  for_each_row(tensor, [&](int64_t i, int64_t offset) {
    decode_row(tensor.dtype, bytes.data() + offset,
               std::span(values).subspan(static_cast<size_t>(i) * columns, columns));
  });
  return values;
}

Tensor with_gap(const Tensor& dense, int64_t gap) {
  Tensor tensor = dense;
  const int64_t gap_bytes = gap * info(dense.dtype).block_bytes;
  int64_t stride = row_bytes(dense.dtype, dense.shape[-1]).value_or(0) + gap_bytes;
  for (int d = dense.shape.rank() - 2; d >= 0; --d) {
    tensor.stride_bytes[static_cast<size_t>(d)] = stride;
    // An outer gap of its own, so that no stride is a multiple of another by accident.
    stride = stride * dense.shape[d] + gap_bytes;
  }
  return tensor;
}

}  // namespace tessera
