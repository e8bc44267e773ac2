#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::bench {

/// A data cache as the operating system describes it.
struct CacheLevel {
  std::string name;  ///< "L1", "L2", "L3"
  int64_t size_bytes = 0;
  int n_sharing = 1;  ///< CPUs that share one
};

/// Those of the first CPU, smallest first; none where the system does not tell. `folder` is where
/// Linux describes them.
std::vector<CacheLevel> data_caches(
    const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace tessera::bench
