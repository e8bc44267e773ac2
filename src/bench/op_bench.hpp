#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/row.hpp"
#include "device/registry.hpp"

namespace tessera::bench {

struct OpBenchOptions {
  std::string op, row, dtype;  ///< empty: all
  /// Empty: the op's bench cases. A product's MxNxK that is not among them is made up.
  std::string shape;
  int n_threads = 0;  ///< 0: as many as the process may use
  std::string isa;    ///< highest CPU tier
  int64_t warmup = 3;
  int64_t iterations = 10;   ///< runs at least
  double min_seconds = 0.1;  ///< and for at least so long
  bool cold = false;         ///< empty the caches of the operands before every run
  bool single = false;       ///< the first case that fits, and the row that the engine would run
  std::string compare;       ///< libraries to time beside ours; see open_peers()
  bool check = true;         ///< compare with the reference where that is quick
};

/// Times every row of the device on every bench case that the options select, in turns with the
/// probes, and hands each result over as soon as it is there. One submit a run; the time is from
/// submit to the end of wait. On a GPU: see gpu_measure.hpp. Returns how many rows ran. Throws
/// Error{kInvalidArgument} for an op, row or shape that does not exist.
int run_op_bench(const DeviceRegistry::Choice& choice, const OpBenchOptions& options,
                 const std::function<void(const BenchRow&)>& report);

}  // namespace tessera::bench
