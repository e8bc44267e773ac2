#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cpu {

/// Instruction-set tiers, worst first in each family of processors; the numbers are those of
/// TESSERA_TIER (cpu/tier.hpp).
enum class Tier {
  kPortable = 0,
  kNeon = 1,
  kDotprod = 2,
  kAvx2 = 3,
  kAvx512 = 4,
  kAvx512Vnni = 5,
  kAmx = 6,
};
inline constexpr int kNumTiers = 7;

std::string_view name(Tier tier);
std::optional<Tier> tier_from_name(std::string_view name);

/// True when this CPU and its operating system run the tier. Asking for AMX asks the system for the
/// permission to use it, once; threads that exist then and later have it.
bool runs(Tier tier);

/// Tiers that this machine runs, best first, none above `highest` (empty: no limit). Throws
/// Error{kInvalidArgument} for an unknown name, Error{kUnsupported} for one that this CPU lacks.
std::vector<Tier> available_tiers(std::string_view highest = {});

/// Brand string of the CPU.
std::string cpu_name();

}  // namespace tessera::cpu
