#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/row.hpp"

namespace tessera::bench {

/// The exercise of prefill in chunks: what rereading the weights for every chunk costs.
struct PrefillOptions {
  int n_threads = 0;  ///< 0: as many as may be used
  int64_t tokens = 4096, width = 1536;
  bool large = true;  ///< also 16384 tokens of width 2048, and a matrix larger than every cache
};

struct PrefillReport {
  Origin origin;
  int n_threads = 0;
  double peak_gflops = 0;  ///< f32 multiply-adds
  double weight_gbs = 0;   ///< reading the square of weights over and over

  struct Matvec {
    int64_t rows, cols;
    double bytes, time_ns;
    double gbs() const { return bytes / time_ns; }
  };
  std::vector<Matvec> matvecs;

  struct Chunk {
    int64_t tokens, width, chunk;
    double time_ns;
    double gflops() const {
      return 2.0 * static_cast<double>(tokens * width) * static_cast<double>(width) / time_ns;
    }
    /// All reads of the weights together.
    double weight_bytes() const {
      return 4.0 * static_cast<double>(width * width) *
             static_cast<double>((tokens + chunk - 1) / chunk);
    }
  };
  std::vector<Chunk> chunks;
  double chunk_difference = 0;  ///< of chunk 128 (or the smallest) from the whole at once

  struct Block {
    int64_t tokens, width, chunk;
    double time_ns;
  };
  std::vector<Block> blocks;  ///< two layers of QKV, attention and MLP
  double block_difference = 0;

  bool agrees() const { return chunk_difference <= 1e-4 && block_difference <= 1e-3; }
  /// Operations a byte of weights below which reading them is the limit.
  double balance() const { return weight_gbs > 0 ? peak_gflops / weight_gbs : 0; }
};

/// Y = X W^T, `chunk` rows of X at a time. `progress` hears what is under way.
PrefillReport run_prefill(const PrefillOptions& options,
                          const std::function<void(const std::string&)>& progress);
nlohmann::ordered_json to_json(const PrefillReport& report);
std::string describe(const PrefillReport& report);
std::string verdict(const PrefillReport& report);

}  // namespace tessera::bench
