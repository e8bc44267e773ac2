#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/caches.hpp"
#include "bench/probes.hpp"
#include "bench/row.hpp"

namespace tessera::bench {

struct RooflineOptions {
  int n_threads = 0;    ///< of the second set of ceilings and of the points; 0: all
  int64_t rounds = 20;  ///< samples of each limit; the best counts
  int64_t largest_bytes = int64_t{512} << 20;  ///< working set that stands for main memory
  bool points = true;                          ///< also time kernels
};

/// Memory as seen by a team whose working set is so large.
struct MemoryFigures {
  std::string name;  ///< "L1", "L2", "L3", "memory"; empty in a sweep over sizes
  int64_t bytes = 0;
  double read_gbs = 0, copy_gbs = 0;
};

/// What so many threads can do at best.
struct Ceilings {
  int n_threads = 1;
  std::vector<MemoryFigures> levels, sweep;
  struct PeakFigure {
    Peak peak;
    double gops;
  };
  std::vector<PeakFigure> peaks;  ///< only those that the machine has
};

/// A kernel under the roof.
struct RooflinePoint {
  std::string group;  ///< "decode", "prefill", "matrix"
  std::string label;  ///< "QKV"
  BenchRow row;
};

struct Roofline {
  Origin origin;
  std::string isa;
  std::vector<CacheLevel> caches;
  struct Latency {
    int64_t bytes;
    double ns;
  };
  std::vector<Latency> latency;
  std::vector<Ceilings> ceilings;    ///< of one thread and of all; once where that is the same
  std::vector<std::string> missing;  ///< "bf16 dot: this CPU has none"
  std::vector<RooflinePoint> points;

  const Ceilings& all_threads() const { return ceilings.back(); }
};

/// Measures the machine, then the points, each of them in turns with the limits it is compared
/// with. `progress` hears what is under way.
Roofline measure_roofline(const RooflineOptions& options,
                          const std::function<void(const std::string&)>& progress);

/// Operations a byte from which the arithmetic is the limit, not that memory.
double balance(const Ceilings::PeakFigure& peak, const MemoryFigures& memory);

nlohmann::ordered_json to_json(const Roofline& roofline);
/// Tables for people.
std::string describe(const Roofline& roofline);

/// "16 KiB", "512 MiB".
std::string short_bytes(int64_t bytes);

}  // namespace tessera::bench
