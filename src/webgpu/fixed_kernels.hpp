#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "webgpu/kernel.hpp"

namespace tessera::webgpu {

// The WGSL files with a fixed interface: plain files that any WebGPU program can use, beside the
// rows of the engine. This is their table: what to bind, what to put into the uniform, what to
// dispatch.
//
// Bindings are in group 0, numbered from 0 in the order given, the uniform last. A uniform is u32
// words and nothing else; floating-point ones as their bits. All matrices are row-major.

enum class FixedType : uint8_t { kF32, kU32, kVec4F32, kVec4F16 };

struct FixedBinding {
  std::string_view name;
  FixedType type;
  bool written;
};

struct FixedKernel {
  std::string_view name;  ///< of what it computes: "matmul", "linear_residual_w16"
  std::string_view file;  ///< below src/
  std::string_view entry;
  std::vector<FixedBinding> bindings;     ///< of storage; the uniform comes after them
  std::vector<std::string_view> uniform;  ///< its words, in order
  /// Throws Error{kInvalidArgument} for sizes that this entry does not take.
  void (*validate)(std::string_view label, std::span<const uint32_t> uniform);
  /// What the interface says to dispatch, whatever WebGPU's limit.
  Grid (*grid)(std::span<const uint32_t> uniform);
  bool keeps_y = false;  ///< a grid too large is folded into x and z; y keeps its meaning
  bool needs_f16 = false;
  bool needs_subgroups = false;

  std::string label() const;  ///< "matmul:main"
  int64_t uniform_bytes() const { return static_cast<int64_t>(uniform.size()) * 4; }
};

/// Every entry of every file with a fixed interface.
const std::vector<FixedKernel>& fixed_kernels();

/// Throws Error{kInvalidArgument} when there is no such entry.
const FixedKernel& fixed_kernel(std::string_view name, std::string_view entry = "main");

/// What to dispatch for these uniform words when a dimension takes at most `max_grid` workgroups.
/// Throws Error{kInvalidArgument} for sizes that the entry does not take.
Grid fixed_grid(const FixedKernel& kernel, std::span<const uint32_t> uniform,
                int64_t max_grid = 65535);

}  // namespace tessera::webgpu
