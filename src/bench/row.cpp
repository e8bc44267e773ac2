#include "bench/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "cpu/isa.hpp"

namespace tessera::bench {

Origin origin() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::array<char, 32> date = {};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {.machine = cpu::cpu_name(), .commit = TESSERA_COMMIT, .date = date.data()};
}

Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
  };
  return {.median = quantile(0.5), .p10 = quantile(0.1), .p90 = quantile(0.9)};
}

double BenchRow::percent() const {
  const double limit_ns = std::max(compute_ns(), memory_ns());
  return time_ns.median > 0 ? 100 * limit_ns / time_ns.median : 0;
}

std::string BenchRow::bound() const {
  if (ceiling.gflops <= 0 || ceiling.gbs <= 0) return {};
  if (ceiling.latency_ns > std::max(compute_ns(), memory_ns())) return "latency";
  return compute_ns() > memory_ns() ? "compute" : "memory";
}

nlohmann::ordered_json to_json(const BenchRow& row) {
  nlohmann::ordered_json result = {{"op", row.op},
                                   {"case", row.case_name},
                                   {"shape", row.shape},
                                   {"dtype", row.dtype},
                                   {"row", row.row},
                                   {"device", row.device},
                                   {"threads", row.threads},
                                   {"iterations", row.iterations},
                                   {"median_ns", row.time_ns.median},
                                   {"p10_ns", row.time_ns.p10},
                                   {"p90_ns", row.time_ns.p90},
                                   {"flops", row.flops},
                                   {"bytes", row.bytes},
                                   {"intensity", row.intensity()},
                                   {"gflops", row.gflops()},
                                   {"gbs", row.gbs()},
                                   {"peak_gflops", row.ceiling.gflops},
                                   {"peak_gbs", row.ceiling.gbs},
                                   {"step_latency_ns", row.ceiling.latency_ns},
                                   {"percent_of_measured", row.percent()},
                                   {"bound", row.bound()},
                                   {"error", nullptr},
                                   {"cache", row.cold ? "cold" : "warm"},
                                   {"machine", row.origin.machine},
                                   {"commit", row.origin.commit},
                                   {"date", row.origin.date}};
  if (row.error) result["error"] = *row.error;
  for (const PeerTime& peer : row.peers) {
    result["peers"][peer.name] = {{"library", peer.path},       {"median_ns", peer.time_ns.median},
                                  {"p10_ns", peer.time_ns.p10}, {"p90_ns", peer.time_ns.p90},
                                  {"ratio", row.ratio(peer)},   {"error", peer.error}};
  }
  return result;
}

std::string table_heading(const std::vector<std::string>& peers) {
  std::string text = fmt::format(
      "{:<24} {:<18} {:<10} {:<26} {:>3} {:>11} {:>11} {:>11} {:>9} {:>9} {:>8} {:>7} {:>6} {:<8} "
      "{:>8} {:<16}",
      "op", "shape", "dtype", "row", "thr", "median us", "p10", "p90", "MFLOP", "MB", "FLOP/B",
      "GFLOP/s", "GB/s", "bound", "% of it", "error (cache)");
  for (const std::string& peer : peers) text += fmt::format(" {:>12}", fmt::format("x {}", peer));
  return text + "\n";
}

std::string table_line(const BenchRow& row, const std::vector<std::string>& peers) {
  const std::string bound = row.bound();
  std::string text = fmt::format(
      "{:<24} {:<18} {:<10} {:<26} {:>3} {:>11.2f} {:>11.2f} {:>11.2f} {:>9.3f} {:>9.3f} {:>8.2f} "
      "{:>7.1f} {:>6.1f} {:<8} {:>8} {:<16}",
      row.op, row.shape, row.dtype, row.row, row.threads, row.time_ns.median * 1e-3,
      row.time_ns.p10 * 1e-3, row.time_ns.p90 * 1e-3, row.flops * 1e-6, row.bytes * 1e-6,
      row.intensity(), row.gflops(), row.gbs(), bound.empty() ? "-" : bound,
      bound.empty() ? "-" : fmt::format("{:.1f}", row.percent()),
      fmt::format("{} ({})", row.error ? fmt::format("{:.1e}", *row.error) : "-",
                  row.cold ? "cold" : "warm"));
  for (const std::string& name : peers) {
    const auto peer = std::ranges::find(row.peers, name, &PeerTime::name);
    text += fmt::format(" {:>12}",
                        peer == row.peers.end() ? "-" : fmt::format("{:.2f}", row.ratio(*peer)));
  }
  return text + "\n";
}

}  // namespace tessera::bench
