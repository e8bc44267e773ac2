#include "bench/model_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "api/model_impl.hpp"
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

/// The least time of a step on this machine.
double roof_ns(const Model& model, int64_t n_tokens, int64_t n_past, const ModelTest& peaks) {
  const bool quantised = model.info().activations == "q8";
  double sum = 0;
  for (const OpRecord& record : plan_records(model, n_tokens, n_past)) {
    if (record.composed) continue;
    const double peak =
        quantised && is_product(record.op) ? peaks.peak_int8_gops : peaks.peak_gflops;
    sum += std::max(record.cost.flops / peak, record.cost.bytes / peaks.peak_gbs);
  }
  return sum;
}

/// A prompt runs in chunks, a generation token by token: at the mean depth, since cost grows
/// linearly with it.
double test_roof_ns(const Model& model, const ModelTest& test) {
  if (test.n_gen > 0) {
    const double step_ns = roof_ns(model, 1, test.n_depth + (test.n_gen + 1) / 2, test);
    return step_ns * static_cast<double>(test.n_gen);
  }
  const int64_t chunk = model.impl()->engine->max_step_tokens();
  double sum = 0;
  for (int64_t done = 0; done < test.n_prompt; done += chunk) {
    sum += roof_ns(model, std::min(chunk, test.n_prompt - done), test.n_depth + done, test);
  }
  return sum;
}

/// One repetition; the time in ns.
double run_once(const Model& model, const ModelTest& test, uint64_t seed) {
  const int64_t vocab_size = model.info().vocab_size;
  GenerateOptions options;
  options.temperature = 0;
  options.ignore_eos = true;
  Session session(model);
  if (test.n_gen > 0) {
    // The first token comes out of the prompt's step, so one more gives n_gen decoding steps.
    options.max_tokens = test.n_gen + 1;
    const auto ids = random_ids(std::max<int64_t>(test.n_depth, 1), vocab_size, seed);
    return session.generate(ids, options).timings.decode_ms * 1e6;
  }
  options.max_tokens = 0;
  const auto ids = random_ids(test.n_depth + test.n_prompt, vocab_size, seed);
  const auto depth = std::span(ids).first(static_cast<size_t>(test.n_depth));
  if (!depth.empty()) session.generate(depth, options);
  return session.generate(ids, options).timings.prefill_ms * 1e6;
}

ModelTest run_test(const Model& model, ModelTest test, int64_t repetitions, Probes* probes) {
  test.test_time = origin().date;
  run_once(model, test, 0);
  Ceilings ceilings;
  for (int64_t i = 0; i < repetitions; ++i) {
    if (probes != nullptr) ceilings.sample(*probes, model.info().weight_bytes);
    test.samples_ns.push_back(run_once(model, test, static_cast<uint64_t>(i) + 1));
  }
  if (probes != nullptr) {
    // A ceiling is the best that the machine was seen to do; on a shared one it varies by half.
    const auto best = [](const std::vector<double>& samples) { return std::ranges::max(samples); };
    test.peak_gflops = best(ceilings.gflops);
    test.peak_int8_gops = best(ceilings.int8_gops);
    test.peak_gbs = best(ceilings.gbs);
    test.roof_ts = static_cast<double>(test.n_tokens()) * 1e9 / test_roof_ns(model, test);
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
  const auto run = [&](int64_t n_prompt, int64_t n_gen, int64_t n_depth) {
    if (n_prompt + n_gen == 0) return;
    ModelTest test;
    test.n_prompt = n_prompt;
    test.n_gen = n_gen;
    test.n_depth = n_depth;
    report(run_test(model, test, options.repetitions, probes ? &*probes : nullptr));
  };
  for (const int64_t n_depth : options.n_depth) {
    for (const int64_t n_prompt : options.n_prompt) run(n_prompt, 0, n_depth);
    for (const int64_t n_gen : options.n_gen) run(0, n_gen, n_depth);
  }
}

nlohmann::ordered_json to_json(const Model& model, const std::string& file, const ModelTest& test) {
  const ModelInfo& info = model.info();
  const Origin from = origin();
  const MeanDeviation ns = mean_deviation(test.samples_ns), ts = mean_deviation(test.samples_ts());
  const int64_t chunk = model.impl()->engine->max_step_tokens();
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
          {"peak_gbs", test.peak_gbs}};
}

}  // namespace tessera::bench
