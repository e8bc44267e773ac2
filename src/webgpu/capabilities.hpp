#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::webgpu {

struct Tuning;

/// What an adapter or a device offers, as far as rows ask. A row that needs more than the core is
/// only registered, or only supports its arguments, where these say so.
struct Capabilities {
  bool f16 = false;               ///< `enable f16;` and f16 in buffers
  bool subgroups = false;         ///< subgroup operations; their size is unknown to the host
  bool timestamps = false;        ///< around a pass
  int64_t max_binding_bytes = 0;  ///< of one storage binding
  int64_t max_buffer_bytes = 0;
  int64_t max_workgroup_bytes = 0;        ///< workgroup memory
  int64_t max_workgroup_threads = 0;      ///< of one workgroup
  int64_t max_grid = 0;                   ///< workgroups in one dimension
  int max_storage_buffers = 0;            ///< of one kernel
  int64_t storage_alignment_bytes = 256;  ///< of where a storage binding starts
  int64_t uniform_alignment_bytes = 256;

  /// How tunable kernels run on this family of adapters (tuning.hpp); outlives everything.
  const Tuning* tuning = nullptr;

  /// Bindings above the 128 MiB that every implementation has.
  bool large_bindings() const { return max_binding_bytes > int64_t{128} << 20; }
  /// Tiers and limits for people: "f16", "subgroups", "binding 2048 MiB", ...
  std::vector<std::string> to_strings() const;
};

}  // namespace tessera::webgpu
