#include "bench/prefill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/caches.hpp"
#include "bench/cpu_steps.hpp"
#include "bench/probes.hpp"
#include "bench/roofline.hpp"
#include "ops/attention/attention.hpp"
#include "ops/elementwise/gelu.hpp"
#include "ops/matmul/matmul.hpp"

namespace tessera::bench {
namespace {

constexpr int64_t kHeadDim = 64;

std::vector<float> random_values(int64_t count, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, static_cast<float>(deviation));
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draw(random);
  return values;
}

/// Weights of a size that keeps activations near 1.
Tensor weights(CpuSteps& steps, int64_t out, int64_t in, unsigned seed) {
  return steps.tensor({out, in},
                      random_values(out * in, 1 / std::sqrt(static_cast<double>(in)), seed));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.shape.count(); ++i) {
    const double difference = std::abs(double{floats_of(a)[i]} - double{floats_of(b)[i]});
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  }
  return largest;
}

/// Median of `runs` behind one that does not count; a single run counts itself.
double timed(CpuSteps& steps, int64_t runs) {
  std::vector<double> samples;
  if (runs > 1) steps.run();
  for (int64_t i = 0; i < runs; ++i) samples.push_back(steps.run());
  return spread_of(std::move(samples)).median;
}

void matmul_chunked(Queue& queue, const Tensor& x, const Tensor& w, const Tensor& y,
                    int64_t chunk) {
  for (int64_t done = 0; done < x.dim(0); done += chunk) {
    const int64_t rows = std::min(chunk, x.dim(0) - done);
    matmul(queue, {.y = y.slice(done, rows), .x = x.slice(done, rows), .w = w});
  }
}

std::vector<int64_t> chunk_sizes(int64_t tokens) {
  std::vector<int64_t> sizes;
  for (const int64_t chunk : {128, 256, 512, 1024, 4096}) {
    if (chunk < tokens) sizes.push_back(chunk);
  }
  if (tokens <= 4096) sizes.push_back(tokens);
  return sizes;
}

void measure_matvec(int n_threads, int64_t rows, int64_t cols, PrefillReport& report) {
  CpuSteps steps(n_threads);
  const Tensor w = weights(steps, rows, cols, 1);
  const Tensor x = steps.tensor({1, cols}, random_values(cols, 1, 2));
  const Tensor y = steps.tensor({1, rows}, {});
  steps.record([&](Queue& queue) { matmul(queue, {.y = y, .x = x, .w = w}); });
  report.matvecs.push_back(
      {rows, cols, 4.0 * static_cast<double>(rows * cols + cols), timed(steps, 5)});
}

void measure_chunks(int n_threads, int64_t tokens, int64_t width, int64_t runs,
                    PrefillReport& report) {
  CpuSteps steps(n_threads);
  const Tensor x = steps.tensor({tokens, width}, random_values(tokens * width, 1, 3));
  const Tensor w = weights(steps, width, width, 4);
  const Tensor y = steps.tensor({tokens, width}, {}), whole = steps.tensor({tokens, width}, {});
  steps.record([&](Queue& queue) { matmul_chunked(queue, x, w, whole, tokens); });
  steps.run();
  for (const int64_t chunk : chunk_sizes(tokens)) {
    steps.record([&](Queue& queue) { matmul_chunked(queue, x, w, y, chunk); });
    report.chunks.push_back({tokens, width, chunk, timed(steps, runs)});
    report.chunk_difference = std::max(report.chunk_difference, largest_difference(y, whole));
  }
}

/// Two layers: q, k, v, causal attention, its output and an MLP four times as wide, each of the
/// last two with the residual added.
struct TwoLayers {
  int64_t tokens, width;
  struct Layer {
    Tensor wq, wk, wv, wo, up, down;
    Tensor k, v, y;
  };
  std::vector<Layer> layers;
  Tensor x, q, attended, mixed, hidden, activated;

  TwoLayers(CpuSteps& steps, int64_t n_tokens, int64_t d) : tokens(n_tokens), width(d) {
    x = steps.tensor({n_tokens, d}, random_values(n_tokens * d, 1, 5));
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned seed = 10 + 10 * i;
      layers.push_back({weights(steps, d, d, seed), weights(steps, d, d, seed + 1),
                        weights(steps, d, d, seed + 2), weights(steps, d, d, seed + 3),
                        weights(steps, 4 * d, d, seed + 4), weights(steps, d, 4 * d, seed + 5),
                        steps.tensor({n_tokens, d}, {}), steps.tensor({n_tokens, d}, {}),
                        steps.tensor({n_tokens, d}, {})});
    }
    q = steps.tensor({n_tokens, d}, {});
    attended = steps.tensor({n_tokens, d}, {});
    mixed = steps.tensor({n_tokens, d}, {});
    hidden = steps.tensor({n_tokens, 4 * d}, {});
    activated = steps.tensor({n_tokens, 4 * d}, {});
  }

  const Tensor& output() const { return layers.back().y; }

  /// The chunk goes through both layers before the next one starts, as in a prefill.
  void record(Queue& queue, int64_t chunk) const {
    for (int64_t done = 0; done < tokens; done += chunk) {
      const int64_t rows = std::min(chunk, tokens - done);
      const auto part = [&](const Tensor& tensor) { return tensor.slice(done, rows); };
      const auto heads = [&](const Tensor& tensor, int64_t begin, int64_t n) {
        return tensor.slice(begin, n).reshaped({n, width / kHeadDim, kHeadDim});
      };
      Tensor input = part(x);
      for (const Layer& layer : layers) {
        matmul(queue, {.y = part(q), .x = input, .w = layer.wq});
        matmul(queue, {.y = part(layer.k), .x = input, .w = layer.wk});
        matmul(queue, {.y = part(layer.v), .x = input, .w = layer.wv});
        attention(queue, {.y = heads(attended, done, rows),
                          .q = heads(q, done, rows),
                          .k = heads(layer.k, 0, done + rows),
                          .v = heads(layer.v, 0, done + rows),
                          .scale = 1 / std::sqrt(static_cast<float>(kHeadDim)),
                          .position_offset = done});
        matmul(queue, {.y = part(mixed), .x = part(attended), .w = layer.wo, .residual = input});
        matmul(queue, {.y = part(hidden), .x = part(mixed), .w = layer.up});
        gelu(queue, {.y = part(activated), .x = part(hidden)});
        matmul(
            queue,
            {.y = part(layer.y), .x = part(activated), .w = layer.down, .residual = part(mixed)});
        input = part(layer.y);
      }
    }
  }
};

void measure_block(int n_threads, int64_t tokens, int64_t width, PrefillReport& report) {
  CpuSteps steps(n_threads);
  const TwoLayers block(steps, tokens, width);
  const Tensor whole = steps.tensor({tokens, width}, {});
  for (const int64_t chunk : {tokens, std::min<int64_t>(tokens, 128)}) {
    steps.record([&](Queue& queue) { block.record(queue, chunk); });
    report.blocks.push_back({tokens, width, chunk, timed(steps, 3)});
    const Tensor& y = block.output();
    if (chunk == tokens) {
      std::copy_n(floats_of(y), y.shape.count(), floats_of(whole));
    } else {
      report.block_difference = largest_difference(y, whole);
    }
  }
}

double milliseconds(double ns) {
  return ns * 1e-6;
}

}  // namespace

PrefillReport run_prefill(const PrefillOptions& options,
                          const std::function<void(const std::string&)>& progress) {
  PrefillReport report;
  report.origin = origin();
  {
    Probes probes(options.n_threads, {});
    report.n_threads = probes.n_threads();
    for (int i = 0; i < 10; ++i) {
      report.peak_gflops = std::max(report.peak_gflops, probes.f32_gflops());
      report.weight_gbs =
          std::max(report.weight_gbs, probes.read_gbs(4 * options.width * options.width));
    }
  }
  progress("matrix times vector");
  measure_matvec(options.n_threads, 2048, 2048, report);
  if (options.large) {
    // Half as much again as the largest cache, but not above 1 GiB.
    const std::vector<CacheLevel> caches = data_caches();
    const int64_t largest = caches.empty() ? int64_t{64} << 20 : caches.back().size_bytes;
    const int64_t bytes = std::min(largest + largest / 2, int64_t{1} << 30);
    measure_matvec(options.n_threads, std::max<int64_t>(bytes / (4 * 4096), 2048), 4096, report);
  }
  progress(fmt::format("{} tokens of width {}", options.tokens, options.width));
  measure_chunks(options.n_threads, options.tokens, options.width, 3, report);
  if (options.large) {
    progress("16384 tokens of width 2048");
    measure_chunks(options.n_threads, 16384, 2048, 1, report);
  }
  progress("two layers");
  measure_block(options.n_threads, std::min<int64_t>(options.tokens, 1024),
                std::min<int64_t>(options.width / kHeadDim * kHeadDim, 1024), report);
  return report;
}

nlohmann::ordered_json to_json(const PrefillReport& report) {
  nlohmann::ordered_json matvecs = nlohmann::ordered_json::array(), chunks = matvecs,
                         blocks = matvecs;
  for (const PrefillReport::Matvec& matvec : report.matvecs) {
    matvecs.push_back({{"rows", matvec.rows},
                       {"cols", matvec.cols},
                       {"bytes", matvec.bytes},
                       {"median_ns", matvec.time_ns},
                       {"gbs", matvec.gbs()}});
  }
  for (const PrefillReport::Chunk& chunk : report.chunks) {
    chunks.push_back({{"tokens", chunk.tokens},
                      {"width", chunk.width},
                      {"chunk", chunk.chunk},
                      {"median_ns", chunk.time_ns},
                      {"gflops", chunk.gflops()},
                      {"weight_bytes", chunk.weight_bytes()},
                      {"layer_weight_bytes", 4 * chunk.weight_bytes()}});
  }
  for (const PrefillReport::Block& block : report.blocks) {
    blocks.push_back({{"tokens", block.tokens},
                      {"width", block.width},
                      {"chunk", block.chunk},
                      {"median_ns", block.time_ns}});
  }
  return {{"machine", report.origin.machine},
          {"commit", report.origin.commit},
          {"date", report.origin.date},
          {"threads", report.n_threads},
          {"peak_gflops", report.peak_gflops},
          {"weight_gbs", report.weight_gbs},
          {"balance", report.balance()},
          {"matvec", matvecs},
          {"chunks", chunks},
          {"chunk_difference", report.chunk_difference},
          {"two_layers", blocks},
          {"two_layers_difference", report.block_difference},
          {"verdict", verdict(report)}};
}

std::string describe(const PrefillReport& report) {
  std::string text;
  for (const PrefillReport::Matvec& matvec : report.matvecs) {
    text += fmt::format("matrix {}x{} ({}) times a vector: {:.3f} ms, {:.1f} GB/s\n", matvec.rows,
                        matvec.cols, short_bytes(4 * matvec.rows * matvec.cols),
                        milliseconds(matvec.time_ns), matvec.gbs());
  }
  text += fmt::format("\n{:>7} {:>6} {:>6} {:>10} {:>9} {:>15} {:>24}\n", "tokens", "width",
                      "chunk", "ms", "GFLOP/s", "weights read MB", "of a four-matrix layer");
  for (const PrefillReport::Chunk& chunk : report.chunks) {
    text += fmt::format("{:>7} {:>6} {:>6} {:>10.2f} {:>9.1f} {:>15.1f} {:>24.1f}\n", chunk.tokens,
                        chunk.width, chunk.chunk, milliseconds(chunk.time_ns), chunk.gflops(),
                        chunk.weight_bytes() * 1e-6, 4 * chunk.weight_bytes() * 1e-6);
  }
  text += fmt::format("Largest difference from one chunk: {:.1e} (allowed: 1e-4)\n\n",
                      report.chunk_difference);
  for (const PrefillReport::Block& block : report.blocks) {
    text += fmt::format(
        "two layers (QKV, attention, MLP), {} tokens of width {}, chunk {}: {:.2f} ms\n",
        block.tokens, block.width, block.chunk, milliseconds(block.time_ns));
  }
  return text + fmt::format("Largest difference between them: {:.1e} (allowed: 1e-3)\n",
                            report.block_difference);
}

std::string verdict(const PrefillReport& report) {
  if (!report.agrees()) return "The chunks disagree: no time of theirs counts.";
  const PrefillReport::Chunk& first = report.chunks.front();
  const PrefillReport::Chunk *best = &first, *worst = &first;
  for (const PrefillReport::Chunk& chunk : report.chunks) {
    if (chunk.tokens != first.tokens || chunk.width != first.width) continue;
    if (chunk.time_ns < best->time_ns) best = &chunk;
    if (chunk.time_ns > worst->time_ns) worst = &chunk;
  }
  const double intensity = static_cast<double>(first.chunk) / 2;
  return fmt::format(
      "For {} tokens of width {} the best chunk is {}, {:.0f} % faster than the worst, {}. With "
      "f32 "
      "weights a chunk of T tokens does T/2 operations a byte of them; this machine needs {:.1f} "
      "({:.0f} GFLOP/s over {:.1f} GB/s from where these weights lie), so chunk {} with {:.0f} is "
      "{}. "
      "In total it reads the weights {:.0f} times as often as one chunk of all tokens.",
      first.tokens, first.width, best->chunk, 100 * (worst->time_ns / best->time_ns - 1),
      worst->chunk, report.balance(), report.peak_gflops, report.weight_gbs, first.chunk, intensity,
      intensity >= report.balance() ? "already bound by arithmetic: rereading the weights is hidden"
                                    : "bound by reading the weights",
      static_cast<double>((first.tokens + first.chunk - 1) / first.chunk));
}

}  // namespace tessera::bench
