#include "cpu/isa.hpp"

#include <fmt/ranges.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <fstream>

#include "base/error.hpp"

namespace tessera::cpu {
namespace {

constexpr std::array<std::string_view, kNumTiers> kNames = {
    "portable", "neon", "dotprod", "avx2", "avx512", "avx512vnni", "amx"};

#if defined(__x86_64__)
/// AMX with int8 and bf16 products, and leave to use it: the kernel saves tile registers only for
/// processes that ask (arch_prctl(2), ARCH_REQ_XCOMP_PERM, state component 18: tile data).
bool has_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr unsigned kAll = kBf16 | kTile | kInt8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}
#elif defined(__aarch64__)
bool has_dotprod() {
#if defined(__linux__)
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__APPLE__)
  return true;  // every processor of Apple's computers
#else
  return false;
#endif
}
#endif

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
    case Tier::kAmx:
      return runs(Tier::kAvx512Vnni) && has_amx();
    case Tier::kNeon:
    case Tier::kDotprod:
      return false;
  }
  return false;
#elif defined(__aarch64__)
  return tier == Tier::kPortable || tier == Tier::kNeon ||
         (tier == Tier::kDotprod && has_dotprod());
#else
  return tier == Tier::kPortable;
#endif
}

std::vector<Tier> available_tiers(std::string_view highest) {
  Tier limit = Tier::kAmx;
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
  std::string implementer, part;  // what aarch64 has instead of a name
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = std::move(value);
    if (line.starts_with("CPU part")) part = std::move(value);
  }
  if (part.empty()) return "unknown CPU";
  return fmt::format("CPU part {} of implementer {}", part, implementer);
}

}  // namespace tessera::cpu
