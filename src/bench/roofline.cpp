#include "bench/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/devices.hpp"
#include "bench/op_bench.hpp"

namespace tessera::bench {
namespace {

struct PointSpec {
  const char *group, *label, *op, *shape, *dtype;
};

// The ops of the default model (30 layers of 576, 9 query and 3 key heads of 64, 1536 inner
// features, 49152 tokens) for one token and for 512, and products of plain matrices.
constexpr PointSpec kPoints[] = {
    {"decode", "QKV", "norm_linear_group", "1x960x576", "q4_0/q8"},
    {"decode", "RoPE, KV write", "rope_kv_write", "1x9x64@1x3x64", "f32"},
    {"decode", "attention to 1024", "paged_attention", "1x9x64@65x3x16x64", "f16"},
    {"decode", "attention out", "linear_residual", "1x576x576", "q4_0/q8"},
    {"decode", "gate and up", "norm_gate_up_swiglu", "1x1536x576", "q4_0/q8"},
    {"decode", "down", "linear_residual", "1x576x1536", "q4_0/q8"},
    {"decode", "head", "norm_linear_group", "1x49152x576", "q8_0/q8"},
    {"prefill", "QKV", "norm_linear_group", "512x960x576", "q4_0/q8"},
    {"prefill", "RoPE, KV write", "rope_kv_write", "512x9x64@512x3x64", "f32"},
    {"prefill", "attention", "attention", "512x9x64@512x3x64", "f16"},
    {"prefill", "attention out", "linear_residual", "512x576x576", "q4_0/q8"},
    {"prefill", "gate and up", "norm_gate_up_swiglu", "512x1536x576", "q4_0/q8"},
    {"prefill", "down", "linear_residual", "512x576x1536", "q4_0/q8"},
    {"prefill", "RMSNorm", "rmsnorm", "512x576", "f32"},
    {"matrix", "f32 4096² x vector", "matmul", "1x4096x4096", "f32"},
    {"matrix", "q4_0 4096² x vector", "matmul", "1x4096x4096", "q4_0/q8"},
    {"matrix", "f32 512³", "matmul", "512x512x512", "f32"},
    {"matrix", "f32 1024³", "matmul", "1024x1024x1024", "f32"},
};

std::vector<MemoryFigures> levels_of(const std::vector<CacheLevel>& caches, int n_threads,
                                     int64_t largest_bytes) {
  std::vector<MemoryFigures> levels;
  for (const CacheLevel& cache : caches) {
    // Half of what the team has: it must fit beside everything else.
    const int64_t n_caches = (n_threads + cache.n_sharing - 1) / cache.n_sharing;
    const int64_t bytes = cache.size_bytes * n_caches / 2;
    if (bytes < largest_bytes) levels.push_back({.name = cache.name, .bytes = bytes});
  }
  levels.push_back({.name = "memory", .bytes = largest_bytes});
  return levels;
}

/// 16 KiB to the largest, four times as large each.
std::vector<int64_t> sweep_sizes(int64_t largest_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = int64_t{16} << 10; bytes < largest_bytes; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(largest_bytes);
  return sizes;
}

void sample_memory(Probes& probes, std::vector<MemoryFigures>& figures) {
  for (MemoryFigures& figure : figures) {
    figure.read_gbs = std::max(figure.read_gbs, probes.read_gbs(figure.bytes));
    figure.copy_gbs = std::max(figure.copy_gbs, probes.copy_gbs(figure.bytes));
  }
}

/// A ceiling is the best that was seen: the machine is often shared. The limits take turns.
Ceilings measure_ceilings(Probes& probes, const RooflineOptions& options,
                          const std::vector<CacheLevel>& caches) {
  Ceilings result;
  result.n_threads = probes.n_threads();
  result.levels = levels_of(caches, result.n_threads, options.largest_bytes);
  for (const int64_t bytes : sweep_sizes(options.largest_bytes)) {
    result.sweep.push_back({.name = {}, .bytes = bytes});
  }
  for (int64_t round = 0; round < options.rounds; ++round) {
    sample_memory(probes, result.levels);
    sample_memory(probes, result.sweep);
    for (int i = 0; i < kNumPeaks; ++i) {
      const auto peak = static_cast<Peak>(i);
      const auto gops = probes.peak_gops(peak);
      if (!gops) continue;
      const auto known = std::ranges::find(result.peaks, peak, &Ceilings::PeakFigure::peak);
      if (known == result.peaks.end()) {
        result.peaks.push_back({peak, *gops});
      } else {
        known->gops = std::max(known->gops, *gops);
      }
    }
  }
  return result;
}

void measure_points(const RooflineOptions& options,
                    const std::function<void(const std::string&)>& progress, Roofline& roofline) {
  const DeviceRegistry::Choice cpu = device_registry().find("cpu");
  for (const PointSpec& spec : kPoints) {
    progress(fmt::format("{}: {}", spec.group, spec.label));
    OpBenchOptions bench;
    bench.op = spec.op;
    bench.shape = spec.shape;
    bench.dtype = spec.dtype;
    bench.n_threads = options.n_threads;
    bench.warmup = 1;
    bench.iterations = 5;
    bench.min_seconds = 0.05;
    bench.single = true;
    bench.check = false;
    const int n_rows = run_op_bench(cpu, bench, [&](const BenchRow& row) {
      roofline.points.push_back({spec.group, spec.label, row});
    });
    if (n_rows == 0) {
      roofline.missing.push_back(fmt::format("{} {}: no kernel for {} {} {}", spec.group,
                                             spec.label, spec.op, spec.shape, spec.dtype));
    }
  }
}

nlohmann::ordered_json to_json(const std::vector<MemoryFigures>& figures) {
  auto list = nlohmann::ordered_json::array();
  for (const MemoryFigures& figure : figures) {
    nlohmann::ordered_json entry;
    if (!figure.name.empty()) entry["level"] = figure.name;
    entry["working_set_bytes"] = figure.bytes;
    entry["read_gbs"] = figure.read_gbs;
    entry["copy_gbs"] = figure.copy_gbs;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string threads_label(int n_threads) {
  return fmt::format("{} thread{}", n_threads, n_threads == 1 ? "" : "s");
}

std::string describe_memory(const Roofline& roofline) {
  std::string text = fmt::format("{:<16}{:>12}", "working set", "latency ns");
  for (const Ceilings& ceilings : roofline.ceilings) {
    text += fmt::format("{:>22}{:>12}", "read GB/s, " + threads_label(ceilings.n_threads), "copy");
  }
  text += '\n';
  for (size_t i = 0; i < roofline.latency.size(); ++i) {
    text += fmt::format("{:<16}{:>12.1f}", short_bytes(roofline.latency[i].bytes),
                        roofline.latency[i].ns);
    for (const Ceilings& ceilings : roofline.ceilings) {
      text +=
          fmt::format("{:>22.1f}{:>12.1f}", ceilings.sweep[i].read_gbs, ceilings.sweep[i].copy_gbs);
    }
    text += '\n';
  }
  text += "A copy counts bytes read and bytes written; working sets are of all threads together.\n";
  for (const CacheLevel& cache : roofline.caches) {
    text += fmt::format("{}: {}{}\n", cache.name, short_bytes(cache.size_bytes),
                        cache.n_sharing > 1 ? fmt::format(" for {} CPUs", cache.n_sharing) : "");
  }
  return text;
}

/// The peaks of one team, and I* below each memory.
std::string describe_peaks(const Ceilings& ceilings) {
  std::string text = fmt::format("{:<16}{:>14}", threads_label(ceilings.n_threads), "peak");
  for (const MemoryFigures& level : ceilings.levels) {
    text += fmt::format("{:>14}", fmt::format("I* {}", level.name));
  }
  text += fmt::format("\n{:<30}", "  read GB/s");
  for (const MemoryFigures& level : ceilings.levels) {
    text += fmt::format("{:>14.1f}", level.read_gbs);
  }
  text += '\n';
  for (const Ceilings::PeakFigure& peak : ceilings.peaks) {
    text += fmt::format("{:<16}{:>14}", name(peak.peak),
                        fmt::format("{:.0f} {}", peak.gops, unit(peak.peak)));
    for (const MemoryFigures& level : ceilings.levels) {
      text += fmt::format("{:>14.1f}", balance(peak, level));
    }
    text += '\n';
  }
  return text;
}

std::string describe_points(const Roofline& roofline) {
  std::string text =
      fmt::format("{:<8} {:<20} {:<20} {:<20} {:<8} {:<24} {:>9} {:>9} {:>8} {:<8} {}\n", "", "",
                  "op", "shape", "dtype", "row", "FLOP/B", "GFLOP/s", "GB/s", "bound", "% of it");
  for (const RooflinePoint& point : roofline.points) {
    const BenchRow& row = point.row;
    text += fmt::format(
        "{:<8} {:<20} {:<20} {:<20} {:<8} {:<24} {:>9.2f} {:>9.1f} {:>8.1f} {:<8} {:.0f}\n",
        point.group, point.label, row.op, row.shape, row.dtype, row.row, row.intensity(),
        row.gflops(), row.gbs(), row.bound(), row.percent());
  }
  return text;
}

}  // namespace

std::string short_bytes(int64_t bytes) {
  if (bytes >= int64_t{1} << 30)
    return fmt::format("{:.3g} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= int64_t{1} << 20)
    return fmt::format("{:.3g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.3g} KiB", static_cast<double>(bytes) / (1 << 10));
}

double balance(const Ceilings::PeakFigure& peak, const MemoryFigures& memory) {
  return memory.read_gbs > 0 ? peak.gops / memory.read_gbs : 0;
}

Roofline measure_roofline(const RooflineOptions& options,
                          const std::function<void(const std::string&)>& progress) {
  Roofline roofline;
  roofline.origin = origin();
  roofline.caches = data_caches();
  for (int i = 0; i < kNumPeaks; ++i) {
    const auto peak = static_cast<Peak>(i);
    const std::string why = missing(peak);
    if (!why.empty()) roofline.missing.push_back(fmt::format("{}: {}", name(peak), why));
  }
  {
    Probes one(1, {}), all(options.n_threads, {});
    roofline.isa = one.isa();
    progress("latency");
    for (const int64_t bytes : sweep_sizes(options.largest_bytes)) {
      roofline.latency.push_back({bytes, one.latency_ns(bytes)});
    }
    progress("one thread");
    roofline.ceilings.push_back(measure_ceilings(one, options, roofline.caches));
    if (all.n_threads() > 1) {
      progress(threads_label(all.n_threads()));
      roofline.ceilings.push_back(measure_ceilings(all, options, roofline.caches));
    }
  }
  if (options.points) measure_points(options, progress, roofline);
  return roofline;
}

nlohmann::ordered_json to_json(const Roofline& roofline) {
  nlohmann::ordered_json json = {{"machine", roofline.origin.machine},
                                 {"commit", roofline.origin.commit},
                                 {"date", roofline.origin.date},
                                 {"isa", roofline.isa},
                                 {"caches", nlohmann::ordered_json::array()},
                                 {"latency", nlohmann::ordered_json::array()},
                                 {"ceilings", nlohmann::ordered_json::array()},
                                 {"missing", roofline.missing},
                                 {"points", nlohmann::ordered_json::array()}};
  for (const CacheLevel& cache : roofline.caches) {
    json["caches"].push_back(
        {{"level", cache.name}, {"size_bytes", cache.size_bytes}, {"cpus", cache.n_sharing}});
  }
  for (const Roofline::Latency& latency : roofline.latency) {
    json["latency"].push_back({{"working_set_bytes", latency.bytes}, {"ns", latency.ns}});
  }
  for (const Ceilings& ceilings : roofline.ceilings) {
    nlohmann::ordered_json peaks;
    for (const Ceilings::PeakFigure& peak : ceilings.peaks) {
      nlohmann::ordered_json balances;
      for (const MemoryFigures& level : ceilings.levels)
        balances[level.name] = balance(peak, level);
      peaks[std::string(identifier(peak.peak))] = {{"gops", peak.gops}, {"balance", balances}};
    }
    json["ceilings"].push_back({{"threads", ceilings.n_threads},
                                {"peaks", peaks},
                                {"levels", to_json(ceilings.levels)},
                                {"sweep", to_json(ceilings.sweep)}});
  }
  for (const RooflinePoint& point : roofline.points) {
    nlohmann::ordered_json entry = {{"group", point.group}, {"label", point.label}};
    entry.update(to_json(point.row));
    json["points"].push_back(std::move(entry));
  }
  return json;
}

std::string describe(const Roofline& roofline) {
  std::string text = fmt::format("{}, {} at most, {}, {}\n\n", roofline.origin.machine,
                                 threads_label(roofline.all_threads().n_threads), roofline.isa,
                                 roofline.origin.date);
  text += describe_memory(roofline);
  for (const Ceilings& ceilings : roofline.ceilings) text += "\n" + describe_peaks(ceilings);
  text += "I* is peak / read rate: below so many operations a byte, that memory is the limit.\n";
  for (const std::string& what : roofline.missing) text += "not measured: " + what + "\n";
  if (!roofline.points.empty()) text += "\n" + describe_points(roofline);
  return text;
}

}  // namespace tessera::bench
