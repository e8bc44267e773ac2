#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "cpu/device.hpp"
#include "tensor/convert.hpp"

namespace tessera {

/// Tensors in host memory, filled by hand. Outputs are usually f64, so that results can be compared
/// to the last digits.
class ReferenceTest : public ::testing::Test {
 protected:
  template <typename T>
  Tensor make(DType dtype, const Shape& shape, const std::vector<T>& values) {
    buffers_.push_back(device_.allocate(static_cast<int64_t>(values.size() * sizeof(T)) + 64));
    Tensor tensor = Tensor::dense(dtype, shape, buffers_.back().get());
    if (!values.empty()) {
      std::memcpy(host_data<char>(tensor), values.data(), values.size() * sizeof(T));
    }
    return tensor;
  }
  Tensor f32(const Shape& shape, const std::vector<float>& values) {
    return make(DType::kF32, shape, values);
  }
  Tensor f64(const Shape& shape, const std::vector<double>& values) {
    return make(DType::kF64, shape, values);
  }
  Tensor f16(const Shape& shape, const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    for (const float value : values) bits.push_back(f32_to_f16(value));
    return make(DType::kF16, shape, bits);
  }
  Tensor u32(const Shape& shape, const std::vector<uint32_t>& values) {
    return make(DType::kU32, shape, values);
  }
  Tensor i32(const Shape& shape, const std::vector<int32_t>& values) {
    return make(DType::kI32, shape, values);
  }
  /// An f64 output that holds `kUntouched` everywhere.
  Tensor output(const Shape& shape) {
    return f64(shape, std::vector<double>(static_cast<size_t>(shape.count()), kUntouched));
  }
  static constexpr double kUntouched = -777;

  template <typename T = double>
  static std::vector<T> values(const Tensor& tensor) {
    const T* data = host_data<T>(tensor);
    return std::vector<T>(data, data + tensor.shape.count());
  }

 private:
  cpu::CpuDevice device_{{.n_threads = 1, .isa = ""}, cpu::CpuDevice::Memory::kShared};
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

inline void expect_close(const std::vector<double>& got, const std::vector<double>& expected,
                         double tolerance = 1e-14) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "at " << i;
}

}  // namespace tessera
