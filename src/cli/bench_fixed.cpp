#include <fmt/format.h>

#include "api/devices.hpp"
#include "base/error.hpp"
#include "bench/fixed_bench.hpp"
#include "cli/commands.hpp"

namespace tessera::cli {
namespace {

struct FixedFlags {
  bench::FixedBenchOptions bench;
  std::string device = "webgpu";
  bool json = false;
};

void print_row(const bench::BenchRow& row) {
  out("{:<46} {:<22} {:>11.2f} {:>9.2f} {:>9.1f} {:>9.1f} {:>8}\n", row.op, row.shape,
      row.time_ns.median * 1e-3, 100 * (row.time_ns.p90 - row.time_ns.p10) / row.time_ns.median,
      row.gflops(), row.gbs(),
      row.ceiling.gbs > 0 ? fmt::format("{:.3f}", row.gbs() / row.ceiling.gbs) : "-");
}

int bench_fixed(const FixedFlags& flags) {
  const DeviceRegistry::Choice choice = device_registry().find(flags.device);
  bool headed = flags.json;
  const int n_rows = run_fixed_bench(choice, flags.bench, [&](const bench::BenchRow& row) {
    if (!headed) {
      out("{:<46} {:<22} {:>11} {:>9} {:>9} {:>9} {:>8}\n", "kernel", "shape", "median us",
          "spread %", "GFLOP/s", "GB/s", "of copy");
    }
    headed = true;
    if (flags.json) {
      print_json(to_json(row));
    } else {
      print_row(row);
    }
    flush_out();
  });
  if (n_rows > 0) return kExitOk;
  fail(ErrorKind::kInvalidArgument, "bench fixed-kernels",
       "no kernel of that name runs here at that size; see --kernel and --size-mib");
}

}  // namespace

void add_bench_fixed(CLI::App& parent, Action& action) {
  const auto flags = std::make_shared<FixedFlags>();
  bench::FixedBenchOptions& bench = flags->bench;
  CLI::App* command = add_command(
      parent, action, "fixed-kernels",
      "Time the WGSL files with a fixed interface and the rows of the same ops, beside a copy",
      "  tessera bench fixed-kernels\n"
      "  tessera bench fixed-kernels --kernel softmax:main_vec4 --size-mib 1024 --json",
      [flags] { return bench_fixed(*flags); });
  command->add_option("--device", flags->device, "Where; see tessera --list-devices")
      ->capture_default_str();
  command->add_option("--kernel", bench.kernel,
                      "Only this one: softmax, or softmax:main_vec4 for one entry of its file");
  command
      ->add_option("--size-mib", bench.buffer_mib,
                   "Size of the tensors of kernels that memory binds, and of the copy")
      ->check(integer_between(1, 1 << 16))
      ->capture_default_str();
  command->add_option("--iters", bench.repetitions, "Timed submits")
      ->check(integer_between(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--dispatches", bench.dispatches,
                   "Dispatches a submit, fewer where they take long")
      ->check(integer_between(1, 10'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object a kernel and shape");
}

}  // namespace tessera::cli
