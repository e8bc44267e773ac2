#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::webgpu {

/// A way to run a kernel, as name -> number. What the names mean is the kernel's business.
class KernelConfig {
 public:
  /// Throws Error{kInvalidArgument} when it has no number of that name.
  int64_t operator[](std::string_view name) const;
  std::string to_string() const;  ///< "rows 8, step 32, ..."

  std::string kernel;  ///< "matmul.tile"
  std::map<std::string, int64_t, std::less<>> numbers;
  bool operator==(const KernelConfig&) const = default;
};

/// The configurations of every tunable kernel for one family of adapters, in the order in which
/// the kernel tries them.
struct Tuning {
  std::string name;                      ///< "nvidia"; "default" fits any adapter
  std::vector<std::string> names_match;  ///< parts of the names of the family's adapters
  std::vector<KernelConfig> configs;

  std::vector<KernelConfig> of(std::string_view kernel) const;
};

/// What ships, from tuning.json: families in the order in which adapters are matched, the last of
/// which is "default". A family has all kernels of the default, with its configurations where it
/// names none.
const std::vector<Tuning>& tunings();

/// Of the first family that an adapter of this name is in.
const Tuning& tuning_for(std::string_view adapter_name);

/// What is worth trying for the kernel on an adapter that nobody has measured.
std::vector<KernelConfig> candidates(std::string_view kernel);

/// For tests: tunings with one configuration a kernel, so many that every one that ships is in one
/// of them.
const std::vector<Tuning>& single_tunings();

}  // namespace tessera::webgpu
