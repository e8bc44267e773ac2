#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/row.hpp"
#include "tessera/tessera.hpp"

namespace tessera::bench {

struct ModelBenchOptions {
  std::vector<int64_t> n_prompt = {512};  ///< a test each; 0: none
  std::vector<int64_t> n_gen = {128};     ///< a test each; 0: none
  std::vector<int64_t> n_depth = {0};     ///< every test behind so many tokens
  std::vector<int64_t> n_parallel = {1};  ///< sequences that generate together; >1: depth 0 only
  bool ops = false;                       ///< also the time of each op
  int64_t repetitions = 5;
  std::string isa;  ///< of the probes: that of the model
};

/// Tokens of context that the tests need.
int64_t context_of(const ModelBenchOptions& options);

/// One test, under llama-bench's names. Times are of the model's steps: without loading and
/// tokenising; a decoding step ends when the likeliest token is known.
struct ModelTest {
  int64_t n_prompt = 0, n_gen = 0, n_depth = 0, n_parallel = 1;
  std::vector<double> samples_ns;  ///< of the whole test, one a repetition
  /// Tokens a second that the machine's measured limits allow: of the sum over the step's ops of
  /// max(FLOPs / peak, bytes / bandwidth); 0 where there are no probes.
  double roof_ts = 0;
  double peak_gflops = 0, peak_int8_gops = 0, peak_gbs = 0;
  std::string test_time;
  /// Of one more repetition, op by op: each is a step of its own, so their sum is a bit more than
  /// the time of the test. Slowest first; empty unless asked for.
  struct OpTime {
    std::string op;
    int64_t n_launches = 0;
    double ns = 0, roof_ns = 0;  ///< roof_ns: 0 where there are no probes
  };
  std::vector<OpTime> ops;

  int64_t n_tokens() const { return (n_prompt + n_gen) * n_parallel; }
  std::string label() const;  ///< "pp512", "tg128 @ d512", "tg128 x8"
  std::vector<double> samples_ts() const;
};

/// Mean and sample standard deviation (0 for one sample).
struct MeanDeviation {
  double mean = 0, deviation = 0;
};
MeanDeviation mean_deviation(const std::vector<double>& samples);

/// Runs the tests in order, each after one run that does not count, and hands each over when it is
/// done. The model must hold context_of(options) tokens.
void run_model_bench(const Model& model, const ModelBenchOptions& options,
                     const std::function<void(const ModelTest&)>& report);

/// llama-bench's fields and, behind them, ours.
nlohmann::ordered_json to_json(const Model& model, const std::string& file, const ModelTest& test);

}  // namespace tessera::bench
