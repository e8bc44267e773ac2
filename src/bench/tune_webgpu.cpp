#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "bench/operands.hpp"
#include "bench/row.hpp"
#include "bench/step_time.hpp"
#include "bench/tune.hpp"
#include "ops/all_ops.hpp"
#include "webgpu/device.hpp"
#include "webgpu/tuning.hpp"

namespace tessera::bench {
namespace {

using webgpu::KernelConfig;
using webgpu::Tuning;

/// What one configuration took on one case.
struct Sample {
  KernelConfig config;
  std::string case_key;  ///< shape and type
  int64_t n_outputs;
  double time_ns;
};

class Tuner {
 public:
  Tuner(const DeviceRegistry::Choice& choice, const TuneOptions& options,
        const std::function<void(const TuneRow&)>& report)
      : choice_(choice),
        options_(options),
        report_(report),
        device_(choice.kind->make(choice.index, {})),
        deadline_ns_(now_ns() + static_cast<int64_t>(options.max_seconds * 1e9)) {}

  template <typename Op>
  void tune() {
    if (!options_.op.empty() && options_.op != Op::kName) return;
    for (const Case<Op>& c : cases<Op>()) {
      const std::vector<std::string>& shapes = options_.shapes;
      const bool shape_wanted =
          shapes.empty() ||
          std::find(shapes.begin(), shapes.end(), shape_label<Op>(c.args)) != shapes.end();
      const bool dtype_wanted = options_.dtype.empty() || options_.dtype == dtype_label<Op>(c.args);
      if (c.bench && shape_wanted && dtype_wanted) tune_case<Op>(c);
    }
  }

  const std::vector<Sample>& samples() const { return samples_; }
  std::string adapter() const { return device_->caps().name; }

 private:
  /// The kernel whose configurations the row has that would run; empty without one.
  template <typename Op>
  std::string_view tuned_kernel(const Case<Op>& c) {
    const KernelTable table = choice_.kind->make_table(*device_, {});
    for (const Row<Op>& row : table.rows<Op>()) {
      if (row.supports(c.args, device_->caps())) return row.traits.tuned;
    }
    return {};
  }

  template <typename Op>
  void tune_case(const Case<Op>& c) {
    const std::string kernel(tuned_kernel<Op>(c));
    if (kernel.empty()) return;
    std::vector<KernelConfig> configs = webgpu::candidates(kernel);
    for (const Tuning& tuning : webgpu::tunings()) {
      for (KernelConfig& config : tuning.of(kernel)) {
        config.numbers["min_outputs"] = 0;
        if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
          configs.push_back(std::move(config));
        }
      }
    }
    const Operands<Op> operands = make_operands<Op>(*device_, c);
    double best_ns = INFINITY;
    const Tuning* own = device().capabilities().tuning;
    for (const KernelConfig& config : configs) {
      if (now_ns() > deadline_ns_) break;
      const Tuning tuning = {.name = "candidate", .names_match = {}, .configs = {config}};
      device().use_tuning(tuning);
      measure<Op>(c, operands.args, config, best_ns);
      device().use_tuning(*own);
    }
  }

  /// Times the first row that takes the case and has the configuration, which is in use.
  template <typename Op>
  void measure(const Case<Op>& c, const typename Op::Args& args, const KernelConfig& config,
               double& best_ns) {
    const KernelTable table = choice_.kind->make_table(*device_, {});
    const auto& rows = table.rows<Op>();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row<Op>& candidate) {
      return candidate.traits.tuned == config.kernel && candidate.supports(c.args, device_->caps());
    });
    if (row == rows.end()) return;
    Arena arena(*device_);
    PlanQueue plan(*device_, table, arena);
    launch_row(plan, *row, args);
    arena.allocate();
    const std::unique_ptr<Queue> queue = device_->make_queue(table, arena);
    StepTimer timer(*queue);
    const auto record = [&](int64_t n) {
      queue->begin();
      for (int64_t i = 0; i < n; ++i) launch_row(*queue, *row, args);
      return queue->end();
    };
    TuneRow result = {.op = std::string(Op::kName),
                      .shape = shape_label<Op>(c.args),
                      .dtype = dtype_label<Op>(c.args),
                      .row = row->name,
                      .config = config.to_string(),
                      .flops = Op::cost(args).flops};
    const std::unique_ptr<Step> one = record(1);
    timer.warm_up(*one);
    result.time_ns = std::min(timer.run_ns(*one, 1), timer.run_ns(*one, 1));
    result.skipped = result.time_ns > kHopeless * best_ns;
    if (!result.skipped) {
      const int64_t n = times_a_step(result.time_ns, kStepNs);
      const std::unique_ptr<Step> many = record(n);
      timer.warm_up(*many);
      std::vector<double> times;
      for (int i = 0; i < kSteps; ++i) times.push_back(timer.run_ns(*many, n));
      result.time_ns = spread_of(std::move(times)).median;
      samples_.push_back(
          {config, result.shape + " " + result.dtype, output_count<Op>(args), result.time_ns});
    }
    best_ns = std::min(best_ns, result.time_ns);
    report_(result);
  }

  template <typename Op>
  static int64_t output_count(const typename Op::Args& args) {
    int64_t count = 0;
    Op::visit(args, [&](std::string_view, const Tensor& tensor, Access access) {
      if (tensor.defined() && access != Access::kRead) count += tensor.shape.count();
    });
    return count;
  }

  webgpu::GpuDevice& device() { return static_cast<webgpu::GpuDevice&>(*device_); }

  static constexpr double kStepNs = 2e6;
  static constexpr int kSteps = 5;
  static constexpr double kHopeless = 2.5;  // a first run is at most this much above the median

  const DeviceRegistry::Choice& choice_;
  const TuneOptions& options_;
  const std::function<void(const TuneRow&)>& report_;
  std::unique_ptr<Device> device_;
  int64_t deadline_ns_;
  std::vector<Sample> samples_;
};

/// For every number of outputs, largest first, the configuration whose slowdown against the best is
/// least, as the geometric mean over the cases of that size; neighbours with the same become one.
std::vector<KernelConfig> best_configs(const std::vector<Sample>& samples,
                                       const std::string& kernel) {
  std::map<std::string, double> best;
  for (const Sample& sample : samples) {
    if (sample.config.kernel != kernel) continue;
    const auto [at, added] = best.try_emplace(sample.case_key, sample.time_ns);
    if (!added) at->second = std::min(at->second, sample.time_ns);
  }
  std::map<int64_t, std::vector<const Sample*>, std::greater<>> by_size;
  for (const Sample& sample : samples) {
    if (sample.config.kernel == kernel) by_size[sample.n_outputs].push_back(&sample);
  }
  std::vector<KernelConfig> result;
  for (const auto& [n_outputs, of_size] : by_size) {
    // Only configurations that ran on all cases of the size can be compared.
    std::map<std::string, std::pair<double, int>> slowdown;
    int n_cases = 0;
    for (const Sample* sample : of_size) {
      auto& [sum, n] = slowdown[sample->config.to_string()];
      sum += std::log(sample->time_ns / best[sample->case_key]);
      n_cases = std::max(n_cases, ++n);
    }
    const Sample* chosen = nullptr;
    double least = INFINITY;
    for (const Sample* sample : of_size) {
      const auto& [sum, n] = slowdown[sample->config.to_string()];
      if (n == n_cases && sum < least) {
        least = sum;
        chosen = sample;
      }
    }
    KernelConfig config = chosen->config;
    config.numbers["min_outputs"] = n_outputs;
    if (!result.empty()) {
      KernelConfig last = result.back();
      last.numbers["min_outputs"] = n_outputs;
      if (last == config) result.pop_back();
    }
    result.push_back(std::move(config));
  }
  if (!result.empty()) result.back().numbers["min_outputs"] = 0;
  return result;
}

}  // namespace

nlohmann::ordered_json run_tune(const DeviceRegistry::Choice& choice, const TuneOptions& options,
                                const std::function<void(const TuneRow&)>& report) {
  if (choice.kind->name != "webgpu") {
    fail(ErrorKind::kUnsupported, "bench tune",
         "the kernels of '{}' have no configurations; expected --device webgpu", choice.kind->name);
  }
  Tuner tuner(choice, options, report);
#define TESSERA_TUNE_OP(Op) tuner.tune<Op>();
  TESSERA_FOR_EACH_OP(TESSERA_TUNE_OP)
#undef TESSERA_TUNE_OP
  nlohmann::ordered_json kernels = nlohmann::ordered_json::object();
  for (const Sample& sample : tuner.samples()) {
    const std::string& kernel = sample.config.kernel;
    if (kernels.contains(kernel)) continue;
    kernels[kernel] = nlohmann::ordered_json::array();
    for (const KernelConfig& config : best_configs(tuner.samples(), kernel)) {
      kernels[kernel].push_back(config.numbers);
    }
  }
  return {{"name", tuner.adapter()}, {"names_match", {tuner.adapter()}}, {"kernels", kernels}};
}

}  // namespace tessera::bench
