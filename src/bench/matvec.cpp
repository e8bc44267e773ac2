#include "bench/matvec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "cpu/isa.hpp"

// The kernels of examples/matvec.cpp, once for each set of flags (CMakeLists.txt).
#define TESSERA_MATVEC_BUILD(space)                                                \
  namespace space {                                                                \
  void matvec_naive(const float* W, const float* x, float* y, int rows, int cols); \
  void matvec_avx2(const float* W, const float* x, float* y, int rows, int cols);  \
  void fill(float* values, size_t count, uint32_t seed);                           \
  }
TESSERA_MATVEC_BUILD(matvec_o0)
TESSERA_MATVEC_BUILD(matvec_o3)
#if defined(__x86_64__)
TESSERA_MATVEC_BUILD(matvec_o0_avx2)
TESSERA_MATVEC_BUILD(matvec_o3_avx2)
#endif
#undef TESSERA_MATVEC_BUILD

namespace tessera::bench {
namespace {

constexpr int kRuns = 20;

struct Kernel {
  const char *build, *name;
  void (*run)(const float* W, const float* x, float* y, int rows, int cols);
};

/// Both kernels in both builds; without AVX2 the second is the first and is left out.
std::vector<Kernel> kernels(bool has_avx2) {
#if defined(__x86_64__)
  if (has_avx2) {
    return {{"-O0", "naive", matvec_o0_avx2::matvec_naive},
            {"-O0", "avx2", matvec_o0_avx2::matvec_avx2},
            {"-O3", "naive", matvec_o3_avx2::matvec_naive},
            {"-O3", "avx2", matvec_o3_avx2::matvec_avx2}};
  }
#else
  static_cast<void>(has_avx2);
#endif
  return {{"-O0", "naive", matvec_o0::matvec_naive}, {"-O3", "naive", matvec_o3::matvec_naive}};
}

void measure(int rows, int cols, MatvecReport& report) {
  const auto n_rows = static_cast<size_t>(rows), n_cols = static_cast<size_t>(cols);
  std::vector<float> matrix(n_rows * n_cols), x(n_cols), first(n_rows), y(n_rows);
  matvec_o3::fill(matrix.data(), matrix.size(), 12345);
  matvec_o3::fill(x.data(), x.size(), 67890);
  const std::vector<Kernel> all = kernels(report.has_avx2);
  std::vector<std::vector<double>> samples(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].run(matrix.data(), x.data(), y.data(), rows, cols);
    if (i == 0) first = y;
    for (size_t row = 0; row < n_rows; ++row) {
      const double difference = std::abs(double{y[row]} - double{first[row]});
      report.largest_difference = std::max(report.largest_difference, difference);
    }
  }
  // In turns: a pause of the machine then hits all of them.
  for (int run = 0; run < kRuns; ++run) {
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t start_ns = now_ns();
      all[i].run(matrix.data(), x.data(), y.data(), rows, cols);
      samples[i].push_back(static_cast<double>(now_ns() - start_ns));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    report.figures.push_back({.build = all[i].build,
                              .kernel = all[i].name,
                              .rows = rows,
                              .cols = cols,
                              .bytes = 4.0 * static_cast<double>(matrix.size() + x.size()),
                              .time_ns = spread_of(std::move(samples[i]))});
  }
}

double mebibytes(double bytes) {
  return bytes / (1 << 20);
}

}  // namespace

const MatvecFigure* MatvecReport::find(const std::string& build, const std::string& kernel,
                                       int rows) const {
  for (const MatvecFigure& figure : figures) {
    if (figure.build == build && figure.kernel == kernel && figure.rows == rows) return &figure;
  }
  return nullptr;
}

MatvecReport run_matvec(const MatvecOptions& options) {
  MatvecReport report;
  report.origin = origin();
  report.has_avx2 = cpu::runs(cpu::Tier::kAvx2);
  if (options.rows > 0) {
    measure(options.rows, options.cols, report);
  } else {
    measure(4096, 4096, report);
    measure(1448, 1448, report);
  }
  return report;
}

nlohmann::ordered_json to_json(const MatvecReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const MatvecFigure& figure : report.figures) {
    rows.push_back({{"build", figure.build},
                    {"kernel", figure.kernel},
                    {"rows", figure.rows},
                    {"cols", figure.cols},
                    {"bytes", figure.bytes},
                    {"median_ns", figure.time_ns.median},
                    {"p10_ns", figure.time_ns.p10},
                    {"p90_ns", figure.time_ns.p90},
                    {"gbs", figure.gbs()}});
  }
  return {{"machine", report.origin.machine},
          {"commit", report.origin.commit},
          {"date", report.origin.date},
          {"largest_difference", report.largest_difference},
          {"rows", rows},
          {"verdict", verdict(report)}};
}

std::string describe(const MatvecReport& report) {
  std::string text = fmt::format("{:<6} {:<8} {:<12} {:>8} {:>10} {:>10} {:>10} {:>8}\n", "build",
                                 "kernel", "matrix", "MiB", "median ms", "p10", "p90", "GB/s");
  for (const MatvecFigure& figure : report.figures) {
    text += fmt::format("{:<6} {:<8} {:<12} {:>8.1f} {:>10.3f} {:>10.3f} {:>10.3f} {:>8.1f}\n",
                        figure.build, figure.kernel, fmt::format("{}x{}", figure.rows, figure.cols),
                        mebibytes(figure.bytes), figure.time_ns.median * 1e-6,
                        figure.time_ns.p10 * 1e-6, figure.time_ns.p90 * 1e-6, figure.gbs());
  }
  if (!report.has_avx2) text += "This CPU has no AVX2: only the naive kernel was timed.\n";
  return text + fmt::format("Largest difference between kernels: {:.1e} (allowed: below 1e-3)\n",
                            report.largest_difference);
}

std::string verdict(const MatvecReport& report) {
  if (!report.agrees()) {
    return fmt::format("The kernels disagree by {:.1e}: no time of theirs counts.",
                       report.largest_difference);
  }
  std::string text;
  int last_rows = 0;
  for (const MatvecFigure& figure : report.figures) {
    if (figure.rows == last_rows) continue;
    last_rows = figure.rows;
    const MatvecFigure* slow = report.find("-O0", "naive", figure.rows);
    const MatvecFigure* plain = report.find("-O3", "naive", figure.rows);
    const MatvecFigure* fast = report.find("-O3", "avx2", figure.rows);
    if (!text.empty()) text += ' ';
    if (fast == nullptr) {
      text += fmt::format("At {:.1f} MiB the naive loop reads {:.1f} GB/s at -O3, {:.1f} at -O0.",
                          mebibytes(figure.bytes), plain->gbs(), slow->gbs());
      continue;
    }
    const double gain = fast->gbs() / slow->gbs(), same_build = fast->gbs() / plain->gbs();
    text += fmt::format(
        "At {:.1f} MiB four AVX2 chains at -O3 read {:.1f} GB/s, {:.1f} times the naive loop at "
        "-O0 "
        "({} the 3 that were to be reached) and {:.1f} times the same loop at -O3, where {}.",
        mebibytes(figure.bytes), fast->gbs(), gain, gain >= 3 ? "at least" : "short of", same_build,
        same_build > 1.2 ? "its one ordered chain of sums still holds it back"
                         : "it keeps up: memory, not the chain of sums, is what binds here");
  }
  return text;
}

}  // namespace tessera::bench
