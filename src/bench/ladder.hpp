#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/row.hpp"

namespace tessera::bench {

struct LadderOptions {
  int64_t size = 1024;  ///< of three square f32 matrices; a multiple of 64
  int n_threads = 0;    ///< of the last steps; 0: as many as may be used
  int64_t runs = 5;     ///< of each step but the first, which runs once
};

struct LadderStep {
  std::string name, idea;
  int n_threads = 1;
  Spread time_ns;
  double error = 0;        ///< largest difference from the first step over its largest magnitude
  double peak_gflops = 0;  ///< f32 multiply-adds of so many threads, measured in between
};

struct LadderReport {
  Origin origin;
  std::string isa;
  int64_t size = 0;
  std::vector<LadderStep> steps;

  double gflops(const LadderStep& step) const;
  bool agrees() const;  ///< no step is off by 1e-4 or more
};

/// From the triple loop to the engine's kernel, one idea a step. `report` hears of each step when
/// it is done.
LadderReport run_ladder(const LadderOptions& options,
                        const std::function<void(const LadderReport&, size_t i_step)>& report);

std::string ladder_heading();
std::string ladder_line(const LadderReport& report, size_t i_step);
nlohmann::ordered_json to_json(const LadderReport& report);
std::string verdict(const LadderReport& report);

}  // namespace tessera::bench
