#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/queue.hpp"
#include "webgpu/capabilities.hpp"
#include "webgpu/kernel.hpp"

namespace tessera::webgpu {

/// What a kernel sees at @binding(i) of group 0, i being the place in the list.
struct Binding {
  BindingKind kind;
  Tensor tensor;
};
inline Binding read(const Tensor& tensor) {
  return {BindingKind::kRead, tensor};
}
inline Binding read_write(const Tensor& tensor) {
  return {BindingKind::kReadWrite, tensor};
}
inline Binding uniform() {
  return {BindingKind::kUniform, {}};
}

/// A storage binding starts at a multiple of storage_alignment_bytes: at the tensor or a little
/// before it. This is how many elements lie between, which the kernel must add (blocks, for block
/// formats). Throws Error{kUnsupported} when it is no whole number of them.
int64_t first_element(const Tensor& tensor, const Capabilities& capabilities);

/// Records one dispatch on a queue of a GpuDevice; a grid with a zero records nothing. Buffers are
/// bound from the aligned start (first_element) to behind the tensor's last value, rounded up to a
/// whole vec4; a tensor without bytes binds 16 bytes that mean nothing. `uniform_bytes` is what
/// @binding of the one uniform() has, exactly its size.
///
/// Throws Error with the label: kDevice when the kernel does not compile, kUnsupported when a limit
/// of the device is exceeded, kInvalidArgument when one buffer is bound twice and written.
void record(Queue& queue, std::string_view label, const Kernel& kernel,
            std::span<const Binding> bindings, std::span<const std::byte> uniform_bytes,
            const Grid& grid);

template <typename Uniform>
requires std::is_trivially_copyable_v<Uniform>
void record(Queue& queue, std::string_view label, const Kernel& kernel,
            const std::vector<Binding>& bindings, const Uniform& uniform, const Grid& grid) {
  static_assert(sizeof(Uniform) % 4 == 0);
  record(queue, label, kernel, std::span(bindings), std::as_bytes(std::span(&uniform, 1)), grid);
}

/// `n` workgroups in one dimension, folded over x and y when they are more than the device allows
/// in one. The kernel takes `workgroup_id.y * num_workgroups.x + workgroup_id.x` and does nothing
/// where that is not below n.
Grid fold(int64_t n, const Capabilities& capabilities);

/// Of the device that makes this queue.
const Capabilities& capabilities_of(Queue& queue);

}  // namespace tessera::webgpu
