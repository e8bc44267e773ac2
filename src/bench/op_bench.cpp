#include "bench/op_bench.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <thread>
#include <type_traits>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/clock.hpp"
#include "base/error.hpp"
#include "bench/operands.hpp"
#include "bench/peers.hpp"
#include "bench/probes.hpp"
#include "cpu/device.hpp"
#include "ops/all_ops.hpp"

#ifdef TESSERA_HAS_WEBGPU
#include "bench/gpu_measure.hpp"
#endif

namespace tessera::bench {

double relative_error(const std::vector<std::vector<double>>& outputs,
                      const std::vector<std::vector<double>>& reference) {
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    double difference = 0, magnitude = 0;
    for (size_t k = 0; k < outputs[i].size(); ++k) {
      const double distance = std::abs(outputs[i][k] - reference[i][k]);
      if (std::isnan(distance)) return distance;
      difference = std::max(difference, distance);
      magnitude = std::max(magnitude, std::abs(reference[i][k]));
    }
    if (difference > 0) worst = std::max(worst, difference / magnitude);
  }
  return worst;
}

std::string join_sizes(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

namespace {

// The reference does about 0.3 GFLOP/s: at most a few seconds a case.
constexpr double kMaxReferenceFlops = 1e9;
constexpr int kRounds = 5;

struct Machine {
  std::unique_ptr<Device> device;
  KernelTable table;
  std::optional<Probes> probes = {};  // of the CPU
  std::vector<std::unique_ptr<Peer>> peers = {};
#ifdef TESSERA_HAS_WEBGPU
  std::optional<GpuProbes> gpu_probes = {};
#endif
};

/// A peer's runs on the operands of a case.
struct PeerRun {
  Peer* peer;
  std::vector<float> y;
  std::vector<double> samples;
};

/// Whether libraries have this op: a product of dense f32 tensors and nothing else.
bool peers_have(const Matmul::Args& args) {
  for (const Tensor& tensor : {args.y, args.x, args.w}) {
    if (tensor.dtype != DType::kF32 || tensor.span_bytes() != tensor.shape.count() * 4) {
      return false;
    }
  }
  return !args.bias.defined() && !args.residual.defined() && !args.live.defined();
}

double time_peer(const Matmul::Args& args, PeerRun& run) {
  const auto floats = [](const Tensor& tensor) {
    return reinterpret_cast<const float*>(tensor.buffer->host_address() + tensor.offset_bytes);
  };
  const int64_t start_ns = now_ns();
  run.peer->matmul(floats(args.x), floats(args.w), args.order == WeightOrder::kInOut, args.y.dim(0),
                   args.y.dim(1), args.x.dim(1), run.y.data());
  return static_cast<double>(now_ns() - start_ns);
}

template <typename Op>
std::vector<PeerRun> start_peers(const Machine& machine, const typename Op::Args& args) {
  std::vector<PeerRun> runs;
  if constexpr (std::is_same_v<Op, Matmul>) {
    if (!peers_have(args)) return runs;
    for (const std::unique_ptr<Peer>& peer : machine.peers) {
      PeerRun run = {peer.get(), std::vector<float>(static_cast<size_t>(args.y.shape.count())), {}};
      time_peer(args, run);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

template <typename Op>
std::vector<PeerTime> finish_peers(const typename Op::Args& args, std::vector<PeerRun> runs) {
  std::vector<PeerTime> times;
  for (PeerRun& run : runs) {
    PeerTime time = {run.peer->name(), run.peer->path(), spread_of(std::move(run.samples))};
    const std::vector<double> theirs(run.y.begin(), run.y.end());
    time.error = relative_error({theirs}, read_outputs<Op>(args));
    times.push_back(std::move(time));
  }
  return times;
}

/// Removes the operands from every cache.
void evict(const std::vector<std::unique_ptr<Buffer>>& buffers) {
#if defined(__x86_64__)
  for (const auto& buffer : buffers) {
    for (int64_t at = 0; at < buffer->size_bytes(); at += 64) {
      _mm_clflush(buffer->host_address() + at);
    }
  }
  _mm_mfence();
#else
  static_cast<void>(buffers);
  fail(ErrorKind::kUnsupported, "--cold", "caches can be emptied on x86-64 only");
#endif
}

double time_step(Queue& queue, const Step& step) {
  const int64_t start_ns = now_ns();
  queue.submit(step);
  queue.wait().value();
  return static_cast<double>(now_ns() - start_ns);
}

/// A library's threads may spin for more work, and so hold a core that the next one needs:
/// OpenBLAS's for a tenth of a second, those of Intel's OpenMP for two.
constexpr std::chrono::milliseconds kPeerRest{300};

/// Runs for a while: after a rest, the second processor of a virtual machine takes milliseconds to
/// come back.
void settle(Queue& queue, const Step& step) {
  for (int64_t ns = 0; ns < 20'000'000;) ns += static_cast<int64_t>(time_step(queue, step));
}

/// Samples of the limits, taken between the runs.
struct CeilingSamples {
  std::vector<double> gflops, gbs, latency_ns;

  void take(Machine& machine, Queue& queue, const Step& empty, double bytes, bool int8, bool cold) {
    for (int i = 0; i < 5; ++i) latency_ns.push_back(time_step(queue, empty));
    if (!machine.probes) return;
    gflops.push_back(int8 ? machine.probes->int8_gops() : machine.probes->f32_gflops());
    // What is not in a cache comes from memory, however small it is.
    gbs.push_back(machine.probes->read_gbs(cold ? INT64_MAX : static_cast<int64_t>(bytes)));
  }
  Ceiling median() const {
    return {.gflops = spread_of(gflops).median,
            .gbs = spread_of(gbs).median,
            .latency_ns = spread_of(latency_ns).median};
  }
};

/// Runs one row on one case, a submit a run.
template <typename Op>
BenchRow measure_submits(Machine& machine, const OpBenchOptions& options, const Case<Op>& c,
                         const Row<Op>& row, const std::vector<std::vector<double>>& reference) {
  Device& device = *machine.device;
  const Operands<Op> operands = make_operands<Op>(device, c);
  Arena arena(device);
  PlanQueue plan(device, machine.table, arena);
  launch_row(plan, row, operands.args);
  arena.allocate();
  const std::unique_ptr<Queue> queue = device.make_queue(machine.table, arena);
  queue->begin();
  const std::unique_ptr<Step> empty = queue->end();
  queue->begin();
  launch_row(*queue, row, operands.args);
  const std::unique_ptr<Step> step = queue->end();

  BenchRow result = describe_row(device, c, row);
  result.cold = options.cold;
  time_step(*queue, *step);
  if (!reference.empty()) result.error = relative_error(read_outputs<Op>(operands.args), reference);
  for (int64_t i = 0; i < options.warmup; ++i) time_step(*queue, *step);

  CeilingSamples ceiling;
  std::vector<double> samples;
  const bool int8 = result.dtype.ends_with("/q8");
  std::vector<PeerRun> peers = start_peers<Op>(machine, operands.args);
  for (int round = 1; round <= kRounds; ++round) {
    ceiling.take(machine, *queue, *empty, result.bytes, int8, options.cold);
    double round_ns = 0;
    while (static_cast<int64_t>(samples.size()) * kRounds < options.iterations * round ||
           round_ns * kRounds < options.min_seconds * 1e9) {
      if (options.cold) evict(operands.buffers);
      samples.push_back(time_step(*queue, *step));
      round_ns += samples.back();
    }
    if constexpr (std::is_same_v<Op, Matmul>) {
      for (PeerRun& peer : peers) {
        for (double peer_ns = 0;
             static_cast<int64_t>(peer.samples.size()) * kRounds < options.iterations * round ||
             peer_ns * kRounds < options.min_seconds * 1e9;) {
          if (options.cold) evict(operands.buffers);
          peer.samples.push_back(time_peer(operands.args, peer));
          peer_ns += peer.samples.back();
        }
        std::this_thread::sleep_for(kPeerRest);
        settle(*queue, *step);
      }
    }
  }
  result.iterations = static_cast<int64_t>(samples.size());
  result.time_ns = spread_of(std::move(samples));
  result.ceiling = ceiling.median();
  result.peers = finish_peers<Op>(operands.args, std::move(peers));
  return result;
}

template <typename Op>
BenchRow measure(Machine& machine, const OpBenchOptions& options, const Case<Op>& c,
                 const Row<Op>& row, const std::vector<std::vector<double>>& reference) {
#ifdef TESSERA_HAS_WEBGPU
  if (machine.gpu_probes) {
    std::vector<std::vector<double>> outputs;
    BenchRow result = measure_on_gpu<Op>(*machine.device, machine.table, *machine.gpu_probes,
                                         options, c, row, outputs);
    if (!reference.empty()) result.error = relative_error(outputs, reference);
    return result;
  }
#endif
  return measure_submits<Op>(machine, options, c, row, reference);
}

/// The reference's outputs; none where it would take too long.
template <typename Op>
std::vector<std::vector<double>> reference_outputs(const Case<Op>& c) {
  if (!c.test || Op::cost(c.args).flops > kMaxReferenceFlops) return {};
  cpu::CpuDevice host({.n_threads = 1, .isa = ""}, cpu::CpuDevice::Memory::kShared);
  const Operands<Op> operands = make_operands<Op>(host, c);
  Op::reference(operands.args);
  return read_outputs<Op>(operands.args);
}

/// "4x576x1536" as numbers; throws Error{kInvalidArgument} unless there are three.
std::vector<int64_t> parse_product(const std::string& text) {
  std::vector<int64_t> sizes;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool digits = !part.empty() && part.size() <= 9 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoll(part) == 0) return {};
    sizes.push_back(std::stoll(part));
    at = end + 1;
  }
  return sizes.size() == 3 ? sizes : std::vector<int64_t>{};
}

/// A product of a shape that is among no cases.
std::vector<Case<Matmul>> product_case(const OpBenchOptions& options) {
  const std::vector<int64_t> sizes = parse_product(options.shape);
  if (sizes.empty()) {
    fail(ErrorKind::kInvalidArgument, "--shape",
         "expected a product as MxNxK or the shape of a bench case, got '{}'", options.shape);
  }
  const bool quantised = options.dtype.ends_with("/q8");
  const std::string weight = options.dtype.substr(0, options.dtype.find('/'));
  const auto dtype = weight.empty() ? DType::kF32 : dtype_from_name(weight);
  if (!dtype) fail(ErrorKind::kInvalidArgument, "--dtype", "unknown type '{}'", weight);
  Case<Matmul> c = {.name = "from the command line", .args = {}};
  c.args.y = f32({sizes[0], sizes[1]});
  c.args.x = Tensor::dense(quantised ? DType::kQ8 : DType::kF32, {sizes[0], sizes[2]});
  c.args.w = Tensor::dense(*dtype, {sizes[1], sizes[2]});
  Matmul::validate(c.args);
  return {c};
}

bool dtype_selected(const std::string& wanted, const std::string& label) {
  return wanted.empty() || wanted == label || wanted == label.substr(0, label.find('/'));
}

template <typename Op>
std::vector<Case<Op>> selected_cases(const OpBenchOptions& options) {
  std::vector<Case<Op>> selected;
  for (Case<Op>& c : cases<Op>()) {
    if (c.bench && (options.shape.empty() || options.shape == shape_label<Op>(c.args)) &&
        dtype_selected(options.dtype, dtype_label<Op>(c.args))) {
      selected.push_back(std::move(c));
    }
  }
  if constexpr (std::is_same_v<Op, Matmul>) {
    if (selected.empty() && !options.shape.empty() && options.op == Op::kName) {
      return product_case(options);
    }
  }
  return selected;
}

template <typename Op>
int bench_op(Machine& machine, const OpBenchOptions& options,
             const std::function<void(const BenchRow&)>& report) {
  if (!options.op.empty() && options.op != Op::kName) return 0;
  int n_rows = 0;
  for (const Case<Op>& c : selected_cases<Op>(options)) {
    std::optional<std::vector<std::vector<double>>> reference;
    for (const Row<Op>& row : machine.table.rows<Op>()) {
      // The reference is a yardstick of results, not of time: only on request.
      const bool wanted = options.row.empty() ? !row.traits.reference : options.row == row.name;
      if (!wanted || !row.supports(c.args, machine.device->caps())) continue;
      if (!reference) {
        reference.emplace();
        if (options.check) reference = reference_outputs<Op>(c);
      }
      report(measure<Op>(machine, options, c, row, *reference));
      ++n_rows;
      if (options.single) return n_rows;
    }
  }
  return n_rows;
}

/// Throws when the options name an op or a row that the table lacks.
void check_names(const KernelTable& table, const OpBenchOptions& options) {
  std::set<std::string> ops, rows;
  for (const std::string& op : table.ops()) {
    ops.insert(op);
    if (!options.op.empty() && options.op != op) continue;
    for (std::string& row : table.row_names(op)) rows.insert(std::move(row));
  }
  if (!options.op.empty() && ops.count(options.op) == 0) {
    fail(ErrorKind::kInvalidArgument, "--op", "expected one of {}, got '{}'", fmt::join(ops, ", "),
         options.op);
  }
  if (!options.row.empty() && rows.count(options.row) == 0) {
    fail(ErrorKind::kInvalidArgument, "--row", "expected one of {}, got '{}'",
         fmt::join(rows, ", "), options.row);
  }
}

}  // namespace

int run_op_bench(const DeviceRegistry::Choice& choice, const OpBenchOptions& options,
                 const std::function<void(const BenchRow&)>& report) {
  const DeviceOptions device_options = {.n_threads = options.n_threads, .isa = options.isa};
  Machine machine = {.device = choice.kind->make(choice.index, device_options), .table = {}};
  machine.table = choice.kind->make_table(*machine.device, device_options);
  check_names(machine.table, options);
  const Caps& caps = machine.device->caps();
  if (caps.kind == "cpu" || caps.kind == "mock")
    machine.probes.emplace(caps.parallelism, options.isa);
  if (!options.compare.empty()) {
    if (caps.kind != "cpu") {
      fail(ErrorKind::kInvalidArgument, "--compare", "these libraries run on the cpu, not on {}",
           caps.kind);
    }
    machine.peers = open_peers(options.compare, caps.parallelism);
  }
#ifdef TESSERA_HAS_WEBGPU
  if (caps.kind == "webgpu") machine.gpu_probes.emplace(*machine.device);
#endif
  int n_rows = 0;
#define TESSERA_BENCH_OP(Op) n_rows += bench_op<Op>(machine, options, report);
  TESSERA_FOR_EACH_OP(TESSERA_BENCH_OP)
#undef TESSERA_BENCH_OP
  return n_rows;
}

}  // namespace tessera::bench
