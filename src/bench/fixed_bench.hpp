#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/row.hpp"
#include "device/registry.hpp"

namespace tessera::bench {

struct FixedBenchOptions {
  std::string kernel;        ///< only this one, as "softmax" or "softmax:main_vec4"
  int64_t buffer_mib = 256;  ///< of the tensors of kernels that memory binds
  int64_t repetitions = 10;  ///< timed submits
  int64_t dispatches = 24;   ///< a submit, unless they would take long
};

/// Times the files with a fixed interface (webgpu/fixed_kernels.hpp), driven through their table,
/// and the engine's rows of the ops that memory binds, and hands each result over as soon as it is
/// there: op "name:entry", or the op of a row; ceiling.gbs the rate of
/// copying a buffer of buffer_mib, measured in turns with the kernel. A time is that of one
/// dispatch: the device's own clock where it has one, around a submit of many. Kernels that memory
/// binds take several sets of buffers in turn, so that no cache holds what the next one reads;
/// products keep one set. Returns how many ran. Throws Error{kUnsupported} on another device.
int run_fixed_bench(const DeviceRegistry::Choice& choice, const FixedBenchOptions& options,
                    const std::function<void(const BenchRow&)>& report);

}  // namespace tessera::bench
