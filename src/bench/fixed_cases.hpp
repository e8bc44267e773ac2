#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "webgpu/fixed_kernels.hpp"

namespace tessera::bench {

/// A kernel with a fixed interface on one shape.
struct FixedCase {
  const webgpu::FixedKernel* kernel;
  std::string shape;
  std::vector<uint32_t> uniform;
  std::vector<int64_t> counts;  ///< scalars of every storage binding
  double flops = 0, bytes = 0;  ///< least work and traffic
  bool memory_bound = false;    ///< several sets of buffers in turn
};

/// Every entry on the shapes that it is judged by. `n` is how many f32 the tensors of kernels that
/// memory binds have.
std::vector<FixedCase> fixed_cases(int64_t n);

}  // namespace tessera::bench
