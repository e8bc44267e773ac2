#include "cpu/isa.hpp"

#include <fmt/ranges.h>

#include <array>
#include <fstream>

#include "base/error.hpp"

namespace tessera::cpu {
namespace {

constexpr std::array<std::string_view, kNumTiers> kNames = {"portable", "avx2", "avx512",
                                                            "avx512vnni"};

}  // namespace

std::string_view name(Tier tier) {
  return kNames[static_cast<size_t>(tier)];
}

std::optional<Tier> tier_from_name(std::string_view name) {
  for (int i = 0; i < kNumTiers; ++i) {
    if (kNames[static_cast<size_t>(i)] == name) return static_cast<Tier>(i);
  }
  return std::nullopt;
}

bool runs(Tier tier) {
#if defined(__x86_64__)
  // The builtins also ask the operating system whether it saves the registers (XGETBV).
  switch (tier) {
    case Tier::kPortable:
      return true;
    case Tier::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case Tier::kAvx512:
      return runs(Tier::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    case Tier::kAvx512Vnni:
      return runs(Tier::kAvx512) && __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return tier == Tier::kPortable;
#endif
}

std::vector<Tier> available_tiers(std::string_view highest) {
  Tier limit = Tier::kAvx512Vnni;
  if (!highest.empty()) {
    const auto wanted = tier_from_name(highest);
    if (!wanted) {
      fail(ErrorKind::kInvalidArgument, "isa", "expected one of {}, got '{}'",
           fmt::join(kNames, ", "), highest);
    }
    if (!runs(*wanted)) {
      fail(ErrorKind::kUnsupported, "isa", "this CPU ({}) does not run {}", cpu_name(), highest);
    }
    limit = *wanted;
  }
  std::vector<Tier> tiers;
  for (int i = static_cast<int>(limit); i >= 0; --i) {
    if (runs(static_cast<Tier>(i))) tiers.push_back(static_cast<Tier>(i));
  }
  return tiers;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

}  // namespace tessera::cpu
