#include "bench/model_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "api/model_impl.hpp"
#include "base/clock.hpp"
#include "bench/probes.hpp"

namespace tessera::bench {
namespace {

/// Ops whose products use int8 when activations are quantised.
bool is_product(std::string_view op) {
  return op == "matmul" || op == "linear_residual" || op == "norm_linear_group" ||
         op == "norm_gate_up_swiglu";
}

struct Ceilings {
  std::vector<double> gflops, int8_gops, gbs;

  void sample(Probes& probes, int64_t weight_bytes) {
    gflops.push_back(probes.f32_gflops());
    int8_gops.push_back(probes.int8_gops());
    gbs.push_back(probes.read_gbs(weight_bytes));
  }
};

std::vector<uint32_t> random_ids(int64_t count, int64_t vocab_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> draw(0, vocab_size - 1);
  std::vector<uint32_t> ids(static_cast<size_t>(count));
  for (uint32_t& id : ids) id = static_cast<uint32_t>(draw(random));
  return ids;
}

/// The least time of each op of a number of equal steps on this machine, in ns.
using OpRoofs = std::map<std::string, double, std::less<>>;
void add_roofs(const Model& model, const std::vector<OpRecord>& records, int64_t n_steps,
               const ModelTest& peaks, OpRoofs& roofs) {
  const bool quantised = model.info().activations == "q8";
  for (const OpRecord& record : records) {
    if (record.composed) continue;
    const double peak =
        quantised && is_product(record.op) ? peaks.peak_int8_gops : peaks.peak_gflops;
    roofs[std::string(record.op)] +=
        static_cast<double>(n_steps) *
        std::max(record.cost.flops / peak, record.cost.bytes / peaks.peak_gbs);
  }
}

/// A prompt runs in chunks, a generation token by token: at the mean depth, since cost grows
/// linearly with it.
OpRoofs test_roofs(const Model& model, const ModelTest& test) {
  OpRoofs roofs;
  if (test.n_gen > 0) {
    const int64_t n_past = test.n_depth + (test.n_gen + 1) / 2;
    add_roofs(model, plan_records(model, test.n_parallel, n_past, Engine::Tokens::kOfOneEach),
              test.n_gen, test, roofs);
    return roofs;
  }
  const int64_t chunk = model.impl()->engine->max_step_tokens();
  for (int64_t done = 0; done < test.n_prompt; done += chunk) {
    const int64_t n = std::min(chunk, test.n_prompt - done);
    add_roofs(model, plan_records(model, n, test.n_depth + done), 1, test, roofs);
  }
  return roofs;
}

/// Runs each op as a step of its own and adds up the times by op.
class OpTimer final : public OpObserver {
 public:
  void recorded(Queue& queue, const OpRecord& record) override {
    if (record.composed) return;
    const std::unique_ptr<Step> step = queue.end();
    const int64_t start_ns = now_ns();
    queue.submit(*step);
    queue.wait().value();
    ModelTest::OpTime& time = times_[std::string(record.op)];
    time.ns += static_cast<double>(now_ns() - start_ns);
    ++time.n_launches;
    queue.begin();
  }

  std::vector<ModelTest::OpTime> slowest_first(const OpRoofs& roofs) const {
    std::vector<ModelTest::OpTime> result;
    for (const auto& [op, time] : times_) {
      result.push_back(time);
      result.back().op = op;
      const auto roof = roofs.find(op);
      if (roof != roofs.end()) result.back().roof_ns = roof->second;
    }
    std::ranges::sort(result, std::greater(), &ModelTest::OpTime::ns);
    return result;
  }

 private:
  std::map<std::string, ModelTest::OpTime> times_;
};

/// Calls an observer, if there is one, for the ops of a scope.
class Observed {
 public:
  Observed(Engine& engine, OpObserver* observer) : engine_(observer ? &engine : nullptr) {
    if (engine_) engine_->observe(observer);
  }
  ~Observed() {
    if (engine_) engine_->observe(nullptr);
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  Engine* engine_;
};

/// One repetition; the time in ns. What a test does not time is not observed either, but for the
/// first token of a generation.
double run_once(const Model& model, const ModelTest& test, uint64_t seed,
                OpObserver* observer = nullptr) {
  Engine& engine = *model.impl()->engine;
  const int64_t vocab_size = model.info().vocab_size;
  GenerateOptions options;
  options.temperature = 0;
  options.ignore_eos = true;
  const GenerateOptions prefill = {.max_tokens = 0};
  // The first token comes out of the prompt's step, so one more gives n_gen decoding steps.
  options.max_tokens = test.n_gen > 0 ? test.n_gen + 1 : 0;
  if (test.n_parallel > 1) {
    std::vector<std::vector<uint32_t>> prompts;
    for (const uint32_t id : random_ids(test.n_parallel, vocab_size, seed)) prompts.push_back({id});
    const Observed observed(engine, observer);
    double decode_ms = 0;
    for (const Generation& one : generate_batch(model, prompts, options)) {
      decode_ms = std::max(decode_ms, one.timings.decode_ms);
    }
    return decode_ms * 1e6;
  }
  Session session(model);
  const int64_t n_new = test.n_gen > 0 ? (test.n_depth == 0) : test.n_prompt;
  const auto ids = random_ids(test.n_depth + n_new, vocab_size, seed);
  const auto depth = std::span(ids).first(static_cast<size_t>(test.n_depth));
  if (!depth.empty()) session.generate(depth, prefill);
  const Observed observed(engine, observer);
  const Timings timings = session.generate(ids, options).timings;
  return (test.n_gen > 0 ? timings.decode_ms : timings.prefill_ms) * 1e6;
}

ModelTest run_test(const Model& model, ModelTest test, const ModelBenchOptions& options,
                   Probes* probes) {
  test.test_time = origin().date;
  run_once(model, test, 0);
  Ceilings ceilings;
  for (int64_t i = 0; i < options.repetitions; ++i) {
    if (probes != nullptr) ceilings.sample(*probes, model.info().weight_bytes);
    test.samples_ns.push_back(run_once(model, test, static_cast<uint64_t>(i) + 1));
  }
  OpRoofs roofs;
  if (probes != nullptr) {
    // A ceiling is the best that the machine was seen to do; on a shared one it varies by half.
    const auto best = [](const std::vector<double>& samples) { return std::ranges::max(samples); };
    test.peak_gflops = best(ceilings.gflops);
    test.peak_int8_gops = best(ceilings.int8_gops);
    test.peak_gbs = best(ceilings.gbs);
    roofs = test_roofs(model, test);
    double roof_ns = 0;
    for (const auto& [op, ns] : roofs) roof_ns += ns;
    test.roof_ts = static_cast<double>(test.n_tokens()) * 1e9 / roof_ns;
  }
  if (options.ops) {
    OpTimer timer;
    run_once(model, test, 0, &timer);
    test.ops = timer.slowest_first(roofs);
  }
  return test;
}

}  // namespace

int64_t context_of(const ModelBenchOptions& options) {
  const auto largest = [](const std::vector<int64_t>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  };
  // One token of prompt where there is no depth, and one behind the last step.
  return largest(options.n_depth) + std::max(largest(options.n_prompt), largest(options.n_gen)) + 2;
}

std::string ModelTest::label() const {
  const std::string name = n_gen > 0 ? fmt::format("tg{}", n_gen) : fmt::format("pp{}", n_prompt);
  if (n_parallel > 1) return fmt::format("{} x{}", name, n_parallel);
  return n_depth > 0 ? fmt::format("{} @ d{}", name, n_depth) : name;
}

std::vector<double> ModelTest::samples_ts() const {
  std::vector<double> result;
  for (const double ns : samples_ns) result.push_back(static_cast<double>(n_tokens()) * 1e9 / ns);
  return result;
}

MeanDeviation mean_deviation(const std::vector<double>& samples) {
  if (samples.empty()) return {};
  const auto n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return {mean, samples.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

void run_model_bench(const Model& model, const ModelBenchOptions& options,
                     const std::function<void(const ModelTest&)>& report) {
  std::optional<Probes> probes;
  if (model.info().device == "cpu") probes.emplace(model.info().n_threads, options.isa);
  const auto run = [&](int64_t n_prompt, int64_t n_gen, int64_t n_depth, int64_t n_parallel) {
    if (n_prompt + n_gen == 0) return;
    ModelTest test;
    test.n_prompt = n_prompt;
    test.n_gen = n_gen;
    test.n_depth = n_depth;
    test.n_parallel = n_parallel;
    report(run_test(model, test, options, probes ? &*probes : nullptr));
  };
  for (const int64_t n_depth : options.n_depth) {
    for (const int64_t n_prompt : options.n_prompt) run(n_prompt, 0, n_depth, 1);
    for (const int64_t n_gen : options.n_gen) {
      for (const int64_t n_parallel : options.n_parallel) run(0, n_gen, n_depth, n_parallel);
    }
  }
}

nlohmann::ordered_json to_json(const Model& model, const std::string& file, const ModelTest& test) {
  const ModelInfo& info = model.info();
  const Origin from = origin();
  const MeanDeviation ns = mean_deviation(test.samples_ns), ts = mean_deviation(test.samples_ts());
  const int64_t chunk = model.impl()->engine->max_step_tokens();
  auto ops = nlohmann::ordered_json::array();
  for (const ModelTest::OpTime& time : test.ops) {
    ops.push_back({{"op", time.op},
                   {"launches", time.n_launches},
                   {"ns", time.ns},
                   {"roof_ns", time.roof_ns}});
  }
  return {{"build_commit", from.commit},
          {"cpu_info", from.machine},
          {"backends", info.device},
          {"model_filename", file},
          {"model_type", info.name + " " + info.weight_type},
          {"model_size", info.weight_bytes},
          {"model_n_params", info.n_params},
          {"n_batch", chunk},
          {"n_ubatch", chunk},
          {"n_threads", info.n_threads},
          {"type_k", info.kv_type},
          {"type_v", info.kv_type},
          {"n_prompt", test.n_prompt},
          {"n_gen", test.n_gen},
          {"n_depth", test.n_depth},
          {"n_parallel", test.n_parallel},
          {"test_time", test.test_time},
          {"avg_ns", ns.mean},
          {"stddev_ns", ns.deviation},
          {"avg_ts", ts.mean},
          {"stddev_ts", ts.deviation},
          {"samples_ns", test.samples_ns},
          {"samples_ts", test.samples_ts()},
          {"activations", info.activations},
          {"roof_ts", test.roof_ts},
          {"roof_share", test.roof_ts > 0 ? ts.mean / test.roof_ts : 0},
          {"peak_gflops", test.peak_gflops},
          {"peak_int8_gops", test.peak_int8_gops},
          {"peak_gbs", test.peak_gbs},
          {"ops", ops}};
}

}  // namespace tessera::bench
