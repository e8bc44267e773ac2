#include "bench/fixed_bench.hpp"

#include "base/error.hpp"

#ifdef TESSERA_HAS_WEBGPU

#include <algorithm>
#include <map>
#include <memory>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "bench/fixed_cases.hpp"
#include "bench/operands.hpp"
#include "device/arena.hpp"
#include "ops/all_ops.hpp"
#include "webgpu/device.hpp"
#include "webgpu/queue.hpp"

namespace tessera::bench {
namespace {

using webgpu::FixedType;

/// Buffers shared by all cases, by role: made larger on demand, and filled only then, as inputs are
/// never written.
class Buffers {
 public:
  explicit Buffers(Device& device) : device_(device) {}

  /// `shape` with memory: its own for every place in the arguments, and every set.
  Tensor get(Tensor shape, bool written, int64_t place, int64_t set) {
    const bool is_f16 = shape.dtype == DType::kF16;
    const int64_t kind = written ? 0 : is_f16 ? 1 : 2;
    shape.buffer =
        &at_least({kind, place, set}, shape.span_bytes(), is_f16 ? kF16Values : kF32Values);
    return shape;
  }
  /// `count` different ids below 2 count, far apart.
  Tensor ids(int64_t set, int64_t count) {
    Tensor tensor = Tensor::dense(DType::kU32, {count});
    std::unique_ptr<Buffer>& buffer = buffers_[{3, count, set}];
    if (!buffer) {
      std::vector<uint32_t> ids(static_cast<size_t>(count));
      uint64_t next = static_cast<uint64_t>(set);
      for (uint32_t& id : ids) {
        id = static_cast<uint32_t>(next % static_cast<uint64_t>(2 * count));
        next += 7919;  // a prime
      }
      buffer = device_.allocate(tensor.span_bytes());
      device_.write(*buffer, 0, std::as_bytes(std::span(ids)));
    }
    tensor.buffer = buffer.get();
    return tensor;
  }
  void clear() { buffers_.clear(); }

 private:
  /// Bits of random finite values near 1, of both signs.
  struct Pattern {
    uint32_t keep, set;
  };
  static constexpr Pattern kF32Values = {0x807f'ffff, 0x3f00'0000};
  static constexpr Pattern kF16Values = {0x83ff'83ff, 0x3800'3800};

  Buffer& at_least(std::array<int64_t, 3> key, int64_t size_bytes, Pattern pattern) {
    std::unique_ptr<Buffer>& buffer = buffers_[key];
    if (buffer && buffer->size_bytes() >= size_bytes) return *buffer;
    buffer.reset();
    buffer = device_.allocate(size_bytes);
    constexpr int64_t kPieceBytes = int64_t{4} << 20;
    std::vector<uint32_t> words(kPieceBytes / 4);
    uint32_t state = 1;
    for (uint32_t& w : words) {
      state = state * 1664525u + 1013904223u;
      w = ((state ^ (state >> 15)) & pattern.keep) | pattern.set;
    }
    const auto bytes = std::as_bytes(std::span(words));
    for (int64_t at = 0; at < size_bytes; at += kPieceBytes) {
      device_.write(*buffer, at,
                    bytes.first(static_cast<size_t>(std::min(kPieceBytes, size_bytes - at))));
    }
    return *buffer;
  }

  Device& device_;
  std::map<std::array<int64_t, 3>, std::unique_ptr<Buffer>> buffers_;
};

/// An operation's preferred row on one shape.
struct EngineCase {
  std::string op, shape;
  double flops = 0, bytes = 0;
  std::function<void(Queue&, Buffers&, int64_t set)> record;
};

template <typename Op>
EngineCase engine_case(const typename Op::Args& args) {
  const Cost cost = Op::cost(args);
  return {.op = std::string(Op::kName),
          .shape = shape_label<Op>(args),
          .flops = cost.flops,
          .bytes = cost.bytes,
          .record = [args](Queue& queue, Buffers& operands, int64_t set) {
            typename Op::Args filled = args;
            int64_t place = 0;
            Op::visit(filled, [&](std::string_view name, Tensor& tensor, Access access) {
              if (!tensor.defined()) return;
              tensor = name == "ids" ? operands.ids(set, tensor.dim(0))
                                     : operands.get(tensor, access != Access::kRead, place, set);
              ++place;
            });
            launch<Op>(queue, filled);
          }};
}

/// What memory binds, on the shapes of the files with a fixed interface.
std::vector<EngineCase> engine_cases(int64_t n) {
  std::vector<EngineCase> all;
  for (const int64_t width : {896, 4096}) {
    const int64_t rows = n / width;
    const Tensor x = f32({rows, width}), weight = f32({width});
    all.push_back(
        engine_case<GatherRows>({.y = x, .table = f32({2 * rows, width}), .ids = u32({rows})}));
    all.push_back(engine_case<Rmsnorm>({.y = x, .x = x, .weight = weight}));
    all.push_back(engine_case<Layernorm>({.y = x, .x = x, .weight = weight, .bias = weight}));
    all.push_back(engine_case<Softmax>({.y = x, .x = x}));
  }
  const Tensor x = f32({n / 4096, 4096});
  all.push_back(engine_case<Silu>({.y = x, .x = x}));
  all.push_back(engine_case<Gelu>({.y = x, .x = x}));
  all.push_back(engine_case<Add>({.y = x, .a = x, .b = x}));
  all.push_back(engine_case<Mul>({.y = x, .a = x, .b = x}));
  all.push_back(engine_case<Swiglu>({.y = x, .gate = x, .up = x}));
  const int64_t tokens = n / (14 * 64);
  for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalfSplit}) {
    all.push_back(engine_case<Rope>({.q = f32({tokens, 14, 64}),
                                     .k = f32({tokens, 2, 64}),
                                     .rotation = f32({tokens, 32, 2}),
                                     .pairing = pairing}));
    if (pairing == RopePairing::kHalfSplit) all.back().shape += " halves";
  }
  return all;
}

/// A submit of many dispatches.
struct Timed {
  std::unique_ptr<Step> step;
  int64_t dispatches = 0;
};

class FixedBench {
 public:
  FixedBench(webgpu::GpuDevice& device, const KernelTable& table, const FixedBenchOptions& options)
      : device_(device),
        options_(options),
        table_(table),
        arena_(device),
        queue_(device.make_queue(table_, arena_)),
        operands_(device) {
    has_clock_ = gpu_queue().enable_timing();
    queue_->begin();
    empty_ = queue_->end();
  }

  bool fits(const FixedCase& c) const {
    const webgpu::Capabilities& limits = device_.capabilities();
    for (size_t i = 0; i < c.counts.size(); ++i) {
      const int64_t size =
          c.counts[i] * (c.kernel->bindings[i].type == FixedType::kVec4F16 ? 2 : 4);
      if (size > std::min(limits.max_binding_bytes, limits.max_buffer_bytes)) return false;
    }
    return (!c.kernel->needs_f16 || limits.f16) && (!c.kernel->needs_subgroups || limits.subgroups);
  }

  BenchRow measure(const FixedCase& c) {
    BenchRow row = measure(record(c));
    row.op = c.kernel->label();
    row.case_name = c.memory_bound ? "rotated buffers" : "one set of buffers";
    row.shape = c.shape;
    row.dtype = c.kernel->needs_f16 ? "f16" : "f32";
    row.row = "fixed interface";
    row.flops = c.flops;
    row.bytes = c.bytes;
    row.cold = c.memory_bound;
    return row;
  }

  BenchRow measure(const EngineCase& c) {
    queue_->begin();
    for (int64_t i = 0; i < options_.dispatches; ++i) c.record(*queue_, operands_, i % kSets);
    BenchRow row = measure({queue_->end(), options_.dispatches});
    row.op = c.op;
    row.case_name = "rotated buffers";
    row.shape = c.shape;
    row.dtype = "f32";
    row.row = table_.row_names(c.op).front();
    row.flops = c.flops;
    row.bytes = c.bytes;
    row.cold = true;
    return row;
  }

  /// Whether the op has a kernel here that takes tensors of this size.
  bool fits(const EngineCase& c) {
    try {
      queue_->begin();
      c.record(*queue_, operands_, 0);
      queue_->begin();
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      return false;
    }
  }

 private:
  static constexpr double kMaxFlops = 2e12;  // of a submit, some tens of milliseconds on a GPU
  static constexpr int64_t kSets = 3;

  webgpu::GpuQueue& gpu_queue() { return static_cast<webgpu::GpuQueue&>(*queue_); }
  int64_t copy_bytes() const {
    const webgpu::Capabilities& limits = device_.capabilities();
    return std::min({options_.buffer_mib << 20, limits.max_binding_bytes / 16 * 16,
                     limits.max_buffer_bytes / 16 * 16});
  }

  /// Runs in turns with copies; the caller says what it was.
  BenchRow measure(const Timed& kernel) {
    const Timed copy = record_copy();
    run(kernel);
    run(copy);
    std::vector<double> times, copy_gbs;
    for (int64_t i = 0; i < options_.repetitions; ++i) {
      times.push_back(run(kernel));
      copy_gbs.push_back(2 * static_cast<double>(copy_bytes()) / run(copy));
    }
    BenchRow row;
    row.device = device_.caps().kind;
    row.iterations = options_.repetitions * kernel.dispatches;
    row.time_ns = spread_of(std::move(times));
    row.ceiling.gbs = spread_of(std::move(copy_gbs)).median;
    row.origin = origin();
    row.origin.machine = device_.caps().name;
    return row;
  }

  Timed record(const FixedCase& c) {
    const webgpu::FixedKernel& kernel = *c.kernel;
    // As many sets as make the caches forget: 150 MB and more between two uses of one.
    const int64_t sets =
        c.memory_bound ? std::max<int64_t>(kSets, static_cast<int64_t>(5e8 / c.bytes)) : 1;
    const double most = std::max(1.0, c.flops > 0 ? kMaxFlops / c.flops : kMaxFlops);
    const int64_t n = static_cast<int64_t>(
        std::min(static_cast<double>(std::max(options_.dispatches, sets)), most));
    queue_->begin();
    for (int64_t i = 0; i < n; ++i) {
      std::vector<webgpu::Binding> bindings;
      for (size_t place = 0; place < c.counts.size(); ++place) {
        const webgpu::FixedBinding& binding = kernel.bindings[place];
        const DType dtype = binding.type == FixedType::kVec4F16 ? DType::kF16 : DType::kF32;
        const Tensor tensor =
            binding.name == "input_ids"
                ? operands_.ids(i % sets, c.counts[place])
                : operands_.get(Tensor::dense(dtype, {c.counts[place]}), binding.written,
                                static_cast<int64_t>(place), i % sets);
        bindings.push_back(binding.written ? webgpu::read_write(tensor) : webgpu::read(tensor));
      }
      bindings.push_back(webgpu::uniform());
      webgpu::record(*queue_, kernel.label(),
                     {.file = std::string(kernel.file), .entry = std::string(kernel.entry)},
                     std::span<const webgpu::Binding>(bindings),
                     std::as_bytes(std::span(c.uniform)),
                     fixed_grid(kernel, c.uniform, device_.capabilities().max_grid));
    }
    return {queue_->end(), n};
  }

  Timed record_copy() {
    const auto n_vec4 = static_cast<uint32_t>(copy_bytes() / 16);
    queue_->begin();
    for (int64_t i = 0; i < options_.dispatches; ++i) {
      const Tensor values = f32({copy_bytes() / 4});
      const Tensor from = operands_.get(values, false, 0, i % kSets);
      const Tensor to = operands_.get(values, true, 1, i % kSets);
      webgpu::record(*queue_, "copy", {.file = "webgpu/copy_vec4.wgsl"},
                     {webgpu::read(from), webgpu::read_write(to), webgpu::uniform()}, n_vec4,
                     webgpu::fold(ceil_div<int64_t>(n_vec4, 256), device_.capabilities()));
    }
    return {queue_->end(), options_.dispatches};
  }

  /// Nanoseconds a dispatch.
  double run(const Timed& timed) {
    double empty_ns = 0;
    if (!has_clock_) empty_ns = wall_ns(*empty_);
    const double ns = wall_ns(*timed.step);
    const double step_ns = has_clock_ ? gpu_queue().step_ns() : std::max(ns - empty_ns, 1.0);
    return step_ns / static_cast<double>(timed.dispatches);
  }
  double wall_ns(const Step& step) {
    const int64_t start_ns = now_ns();
    queue_->submit(step);
    queue_->wait().value();
    return static_cast<double>(now_ns() - start_ns);
  }

  webgpu::GpuDevice& device_;
  const FixedBenchOptions& options_;
  const KernelTable& table_;
  Arena arena_;
  std::unique_ptr<Queue> queue_;
  Buffers operands_;
  std::unique_ptr<Step> empty_;
  bool has_clock_ = false;
};

}  // namespace

int run_fixed_bench(const DeviceRegistry::Choice& choice, const FixedBenchOptions& options,
                    const std::function<void(const BenchRow&)>& report) {
  if (choice.kind->name != "webgpu") {
    fail(ErrorKind::kInvalidArgument, "bench fixed-kernels",
         "expected a webgpu device, got {}; the files are WGSL", choice.kind->name);
  }
  const std::unique_ptr<Device> device = choice.kind->make(choice.index, {});
  const KernelTable table = choice.kind->make_table(*device, {});
  FixedBench bench(static_cast<webgpu::GpuDevice&>(*device), table, options);
  int n_rows = 0;
  for (const EngineCase& c : engine_cases((options.buffer_mib << 20) / 4)) {
    if ((!options.kernel.empty() && options.kernel != c.op) || !bench.fits(c)) continue;
    report(bench.measure(c));
    ++n_rows;
  }
  for (const FixedCase& c : fixed_cases((options.buffer_mib << 20) / 4)) {
    const bool wanted = options.kernel.empty() || options.kernel == c.kernel->name ||
                        options.kernel == c.kernel->label();
    if (!wanted || !bench.fits(c)) continue;
    report(bench.measure(c));
    ++n_rows;
  }
  return n_rows;
}

}  // namespace tessera::bench

#else

namespace tessera::bench {

int run_fixed_bench(const DeviceRegistry::Choice&, const FixedBenchOptions&,
                    const std::function<void(const BenchRow&)>&) {
  fail(ErrorKind::kUnsupported, "bench fixed-kernels",
       "this build has no WebGPU; tools/fetch_wgpu.py gets what it needs");
}

}  // namespace tessera::bench

#endif
