#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/registry.hpp"

namespace tessera::bench {

struct TuneOptions {
  std::string op, dtype;            ///< as OpBenchOptions; empty: all
  std::vector<std::string> shapes;  ///< of bench cases; empty: all
  double max_seconds = 120;         ///< start no measurement after this
};

/// One configuration of one kernel on one bench case.
struct TuneRow {
  std::string op, shape, dtype, row, config;
  double time_ns = 0;  ///< median, on the device where it can tell, of one of many in a step
  double flops = 0;
  bool skipped = false;  ///< already known to be far from the best: measured only once
};

/// Times every candidate and every shipped configuration of the device's tunable kernels on their
/// bench cases and hands each result over. Returns the best ones as a family of tuning.json.
/// Throws Error{kUnsupported} for devices without tunable kernels.
nlohmann::ordered_json run_tune(const DeviceRegistry::Choice& choice, const TuneOptions& options,
                                const std::function<void(const TuneRow&)>& report);

}  // namespace tessera::bench
