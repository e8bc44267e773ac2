#pragma once

#include <algorithm>
#include <string_view>

#include "bench/gpu_probes.hpp"
#include "bench/op_bench.hpp"
#include "bench/operands.hpp"
#include "ops/op.hpp"

namespace tessera::bench {

/// Several sets of a case's tensors, with the same values.
template <typename Op>
std::vector<Operands<Op>> make_operand_sets(Device& device, const Case<Op>& c, int64_t n_sets) {
  std::vector<Operands<Op>> sets(static_cast<size_t>(n_sets));
  for (Operands<Op>& set : sets) set.args = c.args;
  uint64_t seed = 1;
  // Bytes are made once a tensor, which is what takes long.
  size_t place = 0;
  Op::visit(c.args, [&](std::string_view name, const Tensor& tensor, Access access) {
    const size_t wanted = place++;
    if (!tensor.defined()) return;
    const std::vector<std::byte> bytes =
        access == Access::kWrite ? std::vector<std::byte>(static_cast<size_t>(tensor.span_bytes()))
                                 : make_bytes(tensor, fill_of(c, name), seed++);
    for (Operands<Op>& set : sets) {
      set.buffers.push_back(device.allocate(std::max<int64_t>(tensor.span_bytes(), 1)));
      size_t at = 0;
      Op::visit(set.args, [&](std::string_view, Tensor& own, Access) {
        if (at++ != wanted) return;
        own.buffer = set.buffers.back().get();
        write_tensor(own, bytes);
      });
    }
  });
  return sets;
}

/// Times a row on a case: many dispatches a submit, by the device's clock where it has one, in
/// turns with the probes. What memory binds, and everything with `cold`, gets sets of operands in
/// turn, so that no cache holds what comes next. Warm-ups, iterations and seconds count submits.
template <typename Op>
BenchRow measure_on_gpu(Device& device, const KernelTable& table, GpuProbes& probes,
                        const OpBenchOptions& options, const Case<Op>& c, const Row<Op>& row,
                        std::vector<std::vector<double>>& outputs) {
  constexpr double kColdBytes = 5e8, kCachedIntensity = 40, kStepNs = 4e6;
  const Cost cost = Op::cost(c.args);
  const bool memory_bound = cost.flops < kCachedIntensity * cost.bytes;
  const bool cold = memory_bound || options.cold;
  const int64_t n_sets =
      cold ? std::clamp<int64_t>(static_cast<int64_t>(kColdBytes / cost.bytes), 3, 64) : 1;
  const std::vector<Operands<Op>> sets = make_operand_sets<Op>(device, c, n_sets);
  Arena arena(device);
  PlanQueue plan(device, table, arena);
  launch_row(plan, row, sets[0].args);
  arena.allocate();
  const std::unique_ptr<Queue> queue = device.make_queue(table, arena);
  const auto record = [&](int64_t n) {
    queue->begin();
    for (int64_t i = 0; i < n; ++i) {
      launch_row(*queue, row, sets[static_cast<size_t>(i % n_sets)].args);
    }
    return queue->end();
  };
  StepTimer timer(*queue);
  const std::unique_ptr<Step> one = record(1);
  timer.warm_up(*one);
  outputs = read_outputs<Op>(sets[0].args);
  const int64_t n = std::max(n_sets, times_a_step(timer.run_ns(*one, 1), kStepNs));
  const std::unique_ptr<Step> many = record(n);
  timer.warm_up(*many);

  for (int64_t i = 0; i < options.warmup; ++i) timer.run_ns(*many, n);

  BenchRow result = describe_row(device, c, row);
  result.cold = cold;
  result.origin.machine = device.caps().name;
  std::vector<double> times, gflops, gbs, dispatch_ns;
  double timed_ns = 0;
  while (static_cast<int64_t>(times.size()) < options.iterations ||
         timed_ns < options.min_seconds * 1e9) {
    times.push_back(timer.run_ns(*many, n));
    timed_ns += times.back() * static_cast<double>(n);
    gbs.push_back(probes.copy_gbs(static_cast<int64_t>(cost.bytes), n_sets));
    gflops.push_back(probes.f32_gflops());
    dispatch_ns.push_back(probes.dispatch_ns());
  }
  result.iterations = static_cast<int64_t>(times.size()) * n;
  result.time_ns = spread_of(std::move(times));
  result.ceiling = {.gflops = spread_of(std::move(gflops)).median,
                    .gbs = spread_of(std::move(gbs)).median,
                    .latency_ns = spread_of(std::move(dispatch_ns)).median};
  return result;
}

}  // namespace tessera::bench
