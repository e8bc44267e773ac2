#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::bench {

/// Where and by what a figure was measured.
struct Origin {
  std::string machine;  ///< the CPU's own name
  std::string commit;   ///< of the source this program was built from
  std::string date;     ///< UTC, ISO 8601
};
Origin origin();

/// Median and the tenth and ninetieth percentile of a sample (linear between neighbours).
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
};
Spread spread_of(std::vector<double> samples);

/// What this machine does at best, measured in between the runs it is compared with; 0: not
/// measured on this device.
struct Ceiling {
  double gflops = 0;      ///< multiply-adds of the kind the op uses (f32, or int8 for q8)
  double gbs = 0;         ///< read bandwidth of a working set of the op's size
  double latency_ns = 0;  ///< of an empty step
};

/// A vendor library on the same operands, in turns with the kernel.
struct PeerTime {
  std::string name, path;
  Spread time_ns;
  double error = 0;  ///< largest difference from our kernel over our largest magnitude
};

/// One kernel on one shape: everything that `bench ops` reports.
struct BenchRow {
  std::string op, case_name;
  std::string shape;  ///< MxNxK of a product; else the sizes of its main input
  std::string dtype;  ///< of the weight or main input; "q4_1/q8": weight / activations
  std::string row, device;
  int threads = 0;
  int64_t iterations = 0;
  Spread time_ns;
  double flops = 0, bytes = 0;  ///< of the contract: least work and traffic
  Ceiling ceiling;
  /// Largest difference from the f64 reference over its largest magnitude; nothing where the
  /// reference would take too long.
  std::optional<double> error;
  bool cold = false;  ///< caches emptied of the operands before every run
  Origin origin;
  std::vector<PeerTime> peers;  ///< only where a library has such an op

  /// How many times faster than that peer the kernel is.
  double ratio(const PeerTime& peer) const {
    return time_ns.median > 0 ? peer.time_ns.median / time_ns.median : 0;
  }
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  double gflops() const { return time_ns.median > 0 ? flops / time_ns.median : 0; }
  double gbs() const { return time_ns.median > 0 ? bytes / time_ns.median : 0; }
  double compute_ns() const { return ceiling.gflops > 0 ? flops / ceiling.gflops : 0; }
  double memory_ns() const { return ceiling.gbs > 0 ? bytes / ceiling.gbs : 0; }
  /// Share of the measured limit: the time the binding one allows over the time taken, in percent.
  double percent() const;
  /// "compute", "memory" or "latency"; empty without ceilings.
  std::string bound() const;
};

nlohmann::ordered_json to_json(const BenchRow& row);

/// A heading and one line a row, for people; the ratios to peers of these names behind it.
std::string table_heading(const std::vector<std::string>& peers = {});
std::string table_line(const BenchRow& row, const std::vector<std::string>& peers = {});

}  // namespace tessera::bench
