#include "bench/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/clock.hpp"
#include "bench/cpu_steps.hpp"
#include "bench/ladder_kernels.hpp"
#include "bench/parts.hpp"
#include "bench/probes.hpp"
#include "cpu/isa.hpp"
#include "ops/matmul/matmul.hpp"

namespace tessera::bench {
namespace {

const LadderKernels& kernels_of(cpu::Tier tier) {
#if defined(__x86_64__)
  if (tier >= cpu::Tier::kAvx512) return avx512::kLadderKernels;
  if (tier == cpu::Tier::kAvx2) return avx2::kLadderKernels;
#elif defined(__aarch64__)
  if (tier >= cpu::Tier::kNeon) return neon::kLadderKernels;
#else
  static_cast<void>(tier);
#endif
  return portable::kLadderKernels;
}

/// Both blocks packed, C's rows in parts of 64: what one thread does, and several.
class TiledProduct {
 public:
  TiledProduct(const LadderKernels& kernels, int n_threads)
      : kernels_(kernels), team_(n_threads), packed_b_(kLadderDepth * kLadderColumns) {}

  void run(const LadderProblem& problem) {
    const int64_t n = problem.size;
    std::memset(problem.c, 0, static_cast<size_t>(n * n) * sizeof(float));
    for (int64_t k0 = 0; k0 < n; k0 += kLadderDepth) {
      for (int64_t j0 = 0; j0 < n; j0 += kLadderColumns) {
        const int64_t columns = std::min(kLadderColumns, n - j0);
        run_parts(team_, columns / kernels_.panel_columns,
                  [&](int64_t i) { kernels_.pack_panel(problem, k0, j0, i, packed_b_.data()); });
        run_parts(team_, n / kLadderRows, [&](int64_t i) {
          float packed_a[kLadderRows * kLadderDepth];  // 64 KiB of the stack
          kernels_.multiply_rows(problem, k0, j0, i * kLadderRows, packed_b_.data(), packed_a);
        });
      }
    }
  }

  int n_threads() const { return team_.size(); }

 private:
  const LadderKernels& kernels_;
  ThreadTeam team_;
  std::vector<float> packed_b_;
};

double error_of(const std::vector<float>& c, const std::vector<float>& expected) {
  double difference = 0, magnitude = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const double distance = std::abs(double{c[i]} - double{expected[i]});
    if (!(distance <= difference)) difference = distance;  // a NaN stays
    magnitude = std::max(magnitude, std::abs(double{expected[i]}));
  }
  return magnitude > 0 ? difference / magnitude : difference;
}

std::vector<float> random_matrix(int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(static_cast<size_t>(size * size));
  for (float& value : values) value = draw(random);
  return values;
}

}  // namespace

double LadderReport::gflops(const LadderStep& step) const {
  const auto n = static_cast<double>(size);
  return step.time_ns.median > 0 ? 2 * n * n * n / step.time_ns.median : 0;
}

bool LadderReport::agrees() const {
  return std::ranges::all_of(steps, [](const LadderStep& step) { return step.error < 1e-4; });
}

LadderReport run_ladder(const LadderOptions& options,
                        const std::function<void(const LadderReport&, size_t i_step)>& report) {
  LadderReport result;
  result.origin = origin();
  result.size = options.size;
  const cpu::Tier tier = cpu::available_tiers().front();
  result.isa = cpu::name(tier);
  const LadderKernels& kernels = kernels_of(tier);
  const std::vector<float> a = random_matrix(options.size, 1), b = random_matrix(options.size, 2);
  std::vector<float> c(a.size()), expected;
  std::vector<float> packed_b(static_cast<size_t>(kLadderDepth * kLadderColumns));
  const LadderProblem problem = {a.data(), b.data(), c.data(), options.size};
  TiledProduct alone(kernels, 1);
  Probes one(1, {}), all(options.n_threads, {});
  TiledProduct together(kernels, all.n_threads());

  const auto step = [&](std::string name, std::string idea, int n_threads, int64_t runs,
                        const std::function<void()>& run) {
    LadderStep done;
    done.name = std::move(name);
    done.idea = std::move(idea);
    done.n_threads = n_threads;
    std::vector<double> samples, peaks;
    if (runs > 1) run();
    for (int64_t i = 0; i < runs; ++i) {
      peaks.push_back((n_threads == 1 ? one : all).f32_gflops());
      const int64_t start_ns = now_ns();
      run();
      samples.push_back(static_cast<double>(now_ns() - start_ns));
    }
    if (expected.empty()) expected = c;
    done.time_ns = spread_of(std::move(samples));
    done.peak_gflops = std::ranges::max(peaks);  // a ceiling is the best that was seen
    done.error = error_of(c, expected);
    result.steps.push_back(std::move(done));
    report(result, result.steps.size() - 1);
  };
  step("naive", "three loops", 1, 1, [&] { kernels.naive(problem); });
  step("vectorised", "a vector of columns at once", 1, options.runs,
       [&] { kernels.vectorised(problem); });
  step("blocked", "B in blocks that stay in a cache", 1, options.runs,
       [&] { kernels.blocked(problem); });
  step("packed", "the blocks copied to neighbouring addresses", 1, options.runs,
       [&] { kernels.packed(problem, packed_b.data()); });
  step("micro-kernel", "tiles of C in registers", 1, options.runs, [&] { alone.run(problem); });
  step("threaded", "rows shared out", together.n_threads(), options.runs,
       [&] { together.run(problem); });
  {
    CpuSteps engine(together.n_threads());
    const Tensor x = engine.tensor({options.size, options.size}, a);
    const Tensor w = engine.tensor({options.size, options.size}, b);
    const Tensor y = engine.tensor({options.size, options.size}, {});
    engine.record([&](Queue& queue) {
      matmul(queue, {.y = y, .x = x, .w = w, .order = WeightOrder::kInOut});
    });
    step("engine", "the product's own kernel", engine.n_threads(), options.runs, [&] {
      engine.run();
      std::memcpy(c.data(), floats_of(y), c.size() * sizeof(float));
    });
  }
  return result;
}

std::string ladder_heading() {
  return fmt::format("{:<14} {:>3} {:>11} {:>9} {:>9} {:>9} {:>9}  {}\n", "step", "thr",
                     "median ms", "GFLOP/s", "x before", "x naive", "% of FMA", "idea");
}

std::string ladder_line(const LadderReport& report, size_t i_step) {
  const LadderStep& step = report.steps[i_step];
  const double gflops = report.gflops(step);
  const double before = report.gflops(report.steps[i_step > 0 ? i_step - 1 : 0]);
  return fmt::format("{:<14} {:>3} {:>11.3f} {:>9.2f} {:>9.2f} {:>9.1f} {:>9.1f}  {}\n", step.name,
                     step.n_threads, step.time_ns.median * 1e-6, gflops, gflops / before,
                     gflops / report.gflops(report.steps[0]), 100 * gflops / step.peak_gflops,
                     step.idea);
}

nlohmann::ordered_json to_json(const LadderReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const LadderStep& step = report.steps[i];
    rows.push_back({{"step", step.name},
                    {"threads", step.n_threads},
                    {"median_ns", step.time_ns.median},
                    {"p10_ns", step.time_ns.p10},
                    {"p90_ns", step.time_ns.p90},
                    {"gflops", report.gflops(step)},
                    {"gain", report.gflops(step) / report.gflops(report.steps[i > 0 ? i - 1 : 0])},
                    {"peak_gflops", step.peak_gflops},
                    {"error", step.error}});
  }
  return {{"machine", report.origin.machine},
          {"commit", report.origin.commit},
          {"date", report.origin.date},
          {"isa", report.isa},
          {"size", report.size},
          {"rows", rows},
          {"verdict", verdict(report)}};
}

std::string verdict(const LadderReport& report) {
  if (!report.agrees()) return "The steps disagree: no time of theirs counts.";
  size_t largest = 1, best = 0;
  for (size_t i = 1; i < report.steps.size(); ++i) {
    const auto gain = [&](size_t at) {
      return report.gflops(report.steps[at]) / report.gflops(report.steps[at - 1]);
    };
    if (gain(i) > gain(largest)) largest = i;
    if (report.gflops(report.steps[i]) > report.gflops(report.steps[best])) best = i;
  }
  const LadderStep& top = report.steps[best];
  const LadderStep& gainer = report.steps[largest];
  return fmt::format(
      "At {0}x{0}x{0} the fastest step, {1}, does {2:.1f} GFLOP/s, {3:.0f} times the naive loop "
      "and "
      "{4:.0f} % of what {5} thread{6} can multiply and add; the largest gain of one step is {7} "
      "({8}), {9:.1f} times.",
      report.size, top.name, report.gflops(top),
      report.gflops(top) / report.gflops(report.steps[0]),
      100 * report.gflops(top) / top.peak_gflops, top.n_threads, top.n_threads == 1 ? "" : "s",
      gainer.name, gainer.idea, report.gflops(gainer) / report.gflops(report.steps[largest - 1]));
}

}  // namespace tessera::bench
