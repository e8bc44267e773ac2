#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "api/devices.hpp"
#include "base/error.hpp"
#include "bench/model_bench.hpp"
#include "bench/op_bench.hpp"
#include "bench/tune.hpp"
#include "cli/commands.hpp"
#include "cli/model_flags.hpp"

namespace tessera::cli {
namespace {

struct OpFlags {
  bench::OpBenchOptions bench;
  std::string device = "cpu";
  std::vector<std::string> compare;
  bool json = false;
};

int bench_ops(OpFlags flags) {
  flags.bench.compare = fmt::format("{}", fmt::join(flags.compare, ","));
  const DeviceRegistry::Choice choice = device_registry().find(flags.device);
  std::vector<std::string> peers;
  for (const std::string& entry : flags.compare) peers.push_back(entry.substr(0, entry.find('=')));
  bool headed = flags.json;
  const int n_rows = run_op_bench(choice, flags.bench, [&](const bench::BenchRow& row) {
    if (!headed) out("{}", bench::table_heading(peers));
    headed = true;
    if (flags.json) {
      print_json(to_json(row));
    } else {
      out("{}", table_line(row, peers));
    }
    flush_out();
  });
  if (n_rows > 0) return kExitOk;
  fail(ErrorKind::kInvalidArgument, "bench ops",
       "no kernel of these flags has a bench case; see --op, --row, --shape and --dtype");
}

void add_bench_ops(CLI::App& parent, Action& action) {
  const auto flags = std::make_shared<OpFlags>();
  bench::OpBenchOptions& bench = flags->bench;
  CLI::App* command = add_command(
      parent, action, "ops",
      "Time every kernel, beside what this machine does at best at the same moment",
      "  tessera bench ops --op matmul\n"
      "  tessera bench ops --op matmul --shape 1x4096x4096 --dtype q4_1/q8 --threads 1\n"
      "  tessera bench ops --op matmul --dtype f32 --shape 1024x1024x1024 --compare "
      "openblas,onednn\n"
      "  tessera bench ops --warmup 10 --iters 100 --min-time 0 --json",
      [flags] { return bench_ops(*flags); });
  command->add_option("--device", flags->device, "Whose kernels; see tessera --list-devices")
      ->capture_default_str();
  command->add_option("--op", bench.op, "Only this op");
  command->add_option("--row", bench.row, "Only this kernel; 'reference' is the f64 reference");
  command->add_option("--shape", bench.shape,
                      "Only this shape; with --op matmul any MxNxK: y[M,N] = x[M,K] w[N,K]^T");
  command->add_option("--dtype", bench.dtype,
                      "Only this weight type: f32, q4_1, or q4_1/q8 with 8-bit activations");
  command->add_option("-t,--threads", bench.n_threads, "CPU threads; 0: as many as may be used")
      ->check(integer_between(0, 1024))
      ->capture_default_str();
  command->add_option("--isa", bench.isa,
                      "Highest CPU tier: portable, neon, dotprod, avx2, avx512, avx512vnni, amx");
  command->add_option("--warmup", bench.warmup, "Runs before the timed ones")
      ->check(integer_between(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--iters", bench.iterations, "Timed runs, at least")
      ->check(integer_between(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--min-time", bench.min_seconds, "Seconds of timed runs, at least")
      ->check(number_between(0, 3600))
      ->capture_default_str();
  command->add_flag("--cold", bench.cold, "Empty the caches of the operands before every run");
  command
      ->add_option("--compare", flags->compare,
                   "Time these libraries in turns with our f32 products: openblas, onednn, blis, "
                   "mkl; each looked for in TESSERA_OPENBLAS and so on, or given as openblas=FILE. "
                   "The column is their time over ours")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--json", flags->json, "Print one JSON object a kernel and shape");
}

struct TuneFlags {
  bench::TuneOptions tune;
  std::string device = "webgpu";
  std::string json;
};

int bench_tune(const TuneFlags& flags) {
  out("{:<26} {:<16} {:<6} {:<20} {:>10} {:>9}  {}\n", "op", "shape", "dtype", "row", "us",
      "GFLOP/s", "configuration");
  const Json family =
      run_tune(device_registry().find(flags.device), flags.tune, [&](const bench::TuneRow& row) {
        out("{:<26} {:<16} {:<6} {:<20} {:>10.1f} {:>9.0f}  {}{}\n", row.op, row.shape, row.dtype,
            row.row, row.time_ns * 1e-3, row.flops / row.time_ns, row.config,
            row.skipped ? " (once)" : "");
        flush_out();
      });
  if (family.at("kernels").empty()) {
    fail(ErrorKind::kInvalidArgument, "bench tune",
         "no tunable kernel of these flags has a bench case; see --op, --shape and --dtype");
  }
  if (!flags.json.empty()) {
    std::ofstream file(flags.json);
    file << family.dump(2) << '\n';
    if (!file.flush()) fail(ErrorKind::kIo, flags.json, "cannot write the file");
  }
  out("{}\n", family.dump(2));
  return kExitOk;
}

void add_bench_tune(CLI::App& parent, Action& action) {
  const auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = add_command(
      parent, action, "tune", "Find the fastest configurations of tunable kernels on this device",
      "  tessera bench tune --device webgpu --op matmul --dtype f32\n"
      "  tessera bench tune --shape 512x768x768,512x576x576 --json family.json",
      [flags] { return bench_tune(*flags); });
  command->add_option("--device", flags->device, "Whose kernels; see tessera --list-devices")
      ->capture_default_str();
  command->add_option("--op", flags->tune.op, "Only this op");
  command->add_option("--shape", flags->tune.shapes, "Only these shapes of the bench cases")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--dtype", flags->tune.dtype, "Only this weight type");
  command->add_option("--max-time", flags->tune.max_seconds, "Seconds; what is left is skipped")
      ->check(number_between(0, 86'400))
      ->capture_default_str();
  command->add_option("--json", flags->json, "Also write the best as a family for tuning.json");
}

struct ModelBenchFlags {
  ModelFlags model;
  bench::ModelBenchOptions bench;
  std::string format = "md";
};

std::string csv_field(const Json& value) {
  if (!value.is_string()) return value.dump();
  std::string text = "\"";
  for (const char c : value.get<std::string>()) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + "\"";
}

/// llama-bench's CSV has one line a test, without the samples.
void print_csv(const Json& fields, bool heading) {
  std::string names, values;
  for (const auto& [name, value] : fields.items()) {
    if (value.is_array()) continue;
    if (!names.empty()) {
      names += ',';
      values += ',';
    }
    names += name;
    values += csv_field(value);
  }
  if (heading) out("{}\n", names);
  out("{}\n", values);
}

void print_markdown(const ModelInfo& info, const bench::ModelTest& test, bool heading) {
  if (heading) {
    out("| model | size | params | backend | threads | test | t/s | of roof |\n");
    out("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n");
  }
  const bench::MeanDeviation ts = bench::mean_deviation(test.samples_ts());
  out("| {} {} | {} | {:.2f} M | {} | {} | {} | {:.2f} ± {:.2f} | {} |\n", info.name,
      info.weight_type, human_bytes(static_cast<double>(info.weight_bytes)),
      static_cast<double>(info.n_params) * 1e-6, info.device, info.n_threads, test.label(), ts.mean,
      ts.deviation, test.roof_ts > 0 ? fmt::format("{:.1f} %", 100 * ts.mean / test.roof_ts) : "-");
}

void print_op_times(const bench::ModelTest& test) {
  double total_ns = 0;
  for (const auto& time : test.ops) total_ns += time.ns;
  out("\n| {}: op | launches | ms | share | of its roof |\n", test.label());
  out("| --- | ---: | ---: | ---: | ---: |\n");
  for (const auto& [op, n_launches, ns, roof_ns] : test.ops) {
    out("| {} | {} | {:.2f} | {:.1f} % | {} |\n", op, n_launches, ns * 1e-6, 100 * ns / total_ns,
        roof_ns > 0 ? fmt::format("{:.1f} %", 100 * roof_ns / ns) : "-");
  }
}

/// Throws Error{kInvalidArgument} for tests that make no sense together.
void check_tests(const ModelBenchFlags& flags) {
  const auto most = [](const std::vector<int64_t>& n) {
    return n.empty() ? 0 : std::ranges::max(n);
  };
  if (most(flags.bench.n_parallel) > 1 && most(flags.bench.n_depth) > 0) {
    fail(ErrorKind::kInvalidArgument, "--parallel", "expected no --n-depth beside it");
  }
  if (flags.bench.ops && !flags.model.trace_tensors.empty()) {
    fail(ErrorKind::kInvalidArgument, "--ops", "expected no --trace-tensors beside it");
  }
}

int bench_model(ModelBenchFlags flags, Action& action) {
  check_tests(flags);
  const int64_t needed = bench::context_of(flags.bench);
  if (flags.model.load.context == 0) flags.model.load.context = needed;
  if (flags.model.load.context < needed) {
    fail(ErrorKind::kInvalidArgument, "--ctx", "expected at least {} for these tests, got {}",
         needed, flags.model.load.context);
  }
  flags.bench.isa = flags.model.load.isa;
  const std::vector<int64_t>& parallel = flags.bench.n_parallel;
  if (!parallel.empty()) {
    flags.model.load.max_sessions = static_cast<int>(std::ranges::max(parallel));
  }
  const Model model = flags.model.load_model(action).model;
  Json all = Json::array();
  std::vector<bench::ModelTest> with_op_times;
  bool first = true;
  run_model_bench(model, flags.bench, [&](const bench::ModelTest& test) {
    const Json fields = to_json(model, action.model_path, test);
    if (flags.bench.ops) with_op_times.push_back(test);
    if (flags.format == "json") all.push_back(fields);
    if (flags.format == "csv") print_csv(fields, first);
    if (flags.format == "md") print_markdown(model.info(), test, first);
    flush_out();
    first = false;
  });
  if (flags.format == "json") print_json(all);
  if (flags.format == "md") {
    for (const bench::ModelTest& test : with_op_times) print_op_times(test);
  }
  note("[{}; times exclude loading and tokenising, include the choice of the likeliest token]",
       settings_line(model.info()));
  return kExitOk;
}

void add_bench_model(CLI::App& parent, Action& action) {
  const auto flags = std::make_shared<ModelBenchFlags>();
  bench::ModelBenchOptions& bench = flags->bench;
  CLI::App* command = add_command(
      parent, action, "model", "Time prompt processing and generation, as llama-bench does",
      "  tessera bench model default\n"
      "  tessera bench model model.gguf -p 128,512 -n 128 -d 0,1024 -t 2 -o json",
      [flags, &action] { return bench_model(*flags, action); });
  flags->model.add_run_flags(*command);
  const auto add_list = [&](const std::string& names, std::vector<int64_t>& values,
                            const std::string& description) {
    command->add_option(names, values, description)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(integer_between(0, 1 << 24))
        ->capture_default_str();
  };
  add_list("-p,--n-prompt", bench.n_prompt, "Tokens of prompt, a test each; 0: none");
  add_list("-n,--n-gen", bench.n_gen, "Tokens to generate, a test each; 0: none");
  add_list("-d,--n-depth", bench.n_depth, "Tokens already there, for every test");
  command
      ->add_option("--parallel", bench.n_parallel, "Sequences that generate together, a test each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(integer_between(1, 1024))
      ->capture_default_str();
  command->add_flag("--ops", bench.ops, "Also the time of each op, run one by one (md and json)");
  command->add_option("-r,--repetitions", bench.repetitions, "Runs of each test")
      ->check(integer_between(1, 1000))
      ->capture_default_str();
  command->add_option("-o,--output", flags->format, "Format on standard output")
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Measure kernels and models");
  command->require_subcommand(1);
  add_bench_ops(*command, action);
  add_bench_fixed(*command, action);
  add_bench_tune(*command, action);
  add_bench_model(*command, action);
  add_bench_exercises(*command, action);
}

}  // namespace tessera::cli
