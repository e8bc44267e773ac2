// The conformance suite as a program: every row of every op of one device against the f64
// reference. See conformance.hpp for what is checked and support_table.hpp for --support.

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "api/devices.hpp"
#include "conformance.hpp"
#include "cpu/isa.hpp"
#include "ops/all_ops.hpp"
#include "support_table.hpp"

namespace tessera::conformance {
namespace {

struct Flags {
  std::string device = "cpu";
  DeviceOptions device_options;
  Options options;
  bool own_tuning = false;
  bool support = false;
  bool help = false;
};

constexpr std::string_view kUsage =
    "usage: ops_test [--device cpu|mock|...] [--op NAME] [--row NAME] [--isa TIER] [--threads N]\n"
    "                [--default-limits] [--runtime-checks] [--own-tuning] [--quick] [--most N]\n"
    "                [--list] [--support]\n"
    "  --default-limits  GPU: only what every implementation has\n"
    "  --runtime-checks  GPU: kernels with bounds checks\n"
    "  --own-tuning      GPU: only the configurations of its family, not all that ship\n"
    "  --quick    leave out the cases that take long\n"
    "  --most N   at most so many cases of an op, spread evenly\n"
    "  --list     also print every row, and the cases that no kernel supports\n"
    "  --support  print docs/support.md and run nothing\n";

[[noreturn]] void usage_error(const std::string& message) {
  fail(ErrorKind::kInvalidArgument, "", "{}", message);
}

int parse_count(std::string_view flag, const std::string& text, int max) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > max) {
    usage_error(fmt::format("{} expects 1 to {}, got '{}'", flag, max, text));
  }
  return n;
}

Flags parse(int argc, char** argv) {
  Flags flags;
  const auto value = [&](int& i) -> std::string {
    if (i + 1 >= argc) usage_error(fmt::format("{} expects a value", argv[i]));
    return argv[++i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--device") {
      flags.device = value(i);
    } else if (flag == "--op") {
      flags.options.op = value(i);
    } else if (flag == "--row") {
      flags.options.row = value(i);
    } else if (flag == "--isa") {
      flags.device_options.isa = value(i);
    } else if (flag == "--threads") {
      flags.device_options.n_threads = parse_count(flag, value(i), 1024);
    } else if (flag == "--most") {
      flags.options.most = parse_count(flag, value(i), 1'000'000);
    } else if (flag == "--default-limits") {
      flags.device_options.default_limits = true;
    } else if (flag == "--runtime-checks") {
      flags.device_options.runtime_checks = true;
    } else if (flag == "--own-tuning") {
      flags.own_tuning = true;
    } else if (flag == "--quick") {
      flags.options.quick = true;
    } else if (flag == "--list") {
      flags.options.list = true;
    } else if (flag == "--support") {
      flags.support = true;
    } else if (flag == "--help" || flag == "-h") {
      flags.help = true;
    } else {
      usage_error(fmt::format("unknown flag '{}'", flag));
    }
  }
  return flags;
}

void check_all(Harness& harness, const Options& options, Report& report) {
#define TESSERA_CHECK_OP(Op) check_op<Op>(harness, options, cases<Op>(), report);
  TESSERA_FOR_EACH_OP(TESSERA_CHECK_OP)
#undef TESSERA_CHECK_OP
}

const Report* g_report = nullptr;

/// A kernel that touches memory which is not its own ends the program (on the mock device, any
/// access outside of a step does): say which.
void tell_and_crash(int signal) {
  const std::string& current = g_report->current;
  constexpr std::string_view kCrash = "CRASHED ";
  for (const std::string_view part : {kCrash, std::string_view(current), std::string_view("\n")}) {
    if (::write(STDOUT_FILENO, part.data(), part.size()) < 0) break;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// A green run says nothing about the tiers that this machine lacks: names them.
void print_tiers_not_run(std::string_view highest) {
  const std::vector<cpu::Tier> run = cpu::available_tiers(highest);
  std::vector<std::string_view> not_run;
  for (int i = 0; i < cpu::kNumTiers; ++i) {
    const auto tier = static_cast<cpu::Tier>(i);
    if (std::find(run.begin(), run.end(), tier) == run.end()) not_run.push_back(cpu::name(tier));
  }
  if (!not_run.empty()) fmt::print("NOT RUN on this machine: {}\n", fmt::join(not_run, ", "));
}

int run(const Flags& flags) {
  const DeviceRegistry::Choice choice = device_registry().find(flags.device);
  Harness harness = make_harness(*choice.kind, choice.index, flags.device_options);
  Report report;
  g_report = &report;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, tell_and_crash);
  check_all(harness, flags.options, report);
  // Again for the rows that have configurations, with each that ships.
  const bool all_tunings = choice.kind->n_tunings && !flags.own_tuning;
  const int n_tunings = all_tunings ? choice.kind->n_tunings() : 0;
  for (int i = 0; i < n_tunings; ++i) {
    DeviceOptions tuned = flags.device_options;
    tuned.tuning = i;
    Options options = flags.options;
    options.tuned_only = true;
    options.quick = true;
    options.tuning = fmt::format(" (configuration {} of {})", i + 1, n_tunings);
    Harness other = make_harness(*choice.kind, choice.index, tuned);
    check_all(other, options, report);
  }
  if (!report.any_op) usage_error(fmt::format("no op is called '{}'", flags.options.op));
  if (!flags.options.row.empty() && !report.any_row) {
    usage_error(fmt::format("no row is called '{}' on this device{}; --list shows them",
                            flags.options.row,
                            flags.options.op.empty() ? "" : " for " + flags.options.op));
  }
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
  for (const std::string& failure : report.failures) fmt::print("FAILED {}\n", failure);
  if (flags.device == "cpu") print_tiers_not_run(flags.device_options.isa);
  fmt::print("{} passed, {} failed, {} skipped\n", report.n_passed, report.n_failed,
             report.n_skipped);
  return report.n_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera::conformance

int main(int argc, char** argv) {
  using namespace tessera;
  try {
    const conformance::Flags flags = conformance::parse(argc, argv);
    if (flags.help) {
      fmt::print("{}", conformance::kUsage);
      return 0;
    }
    if (flags.support) {
      fmt::print("{}", conformance::support_table());
      return 0;
    }
    return conformance::run(flags);
  } catch (const Error& error) {
    fmt::print(stderr, "ops_test: {}\n", error.what());
    if (error.kind() != ErrorKind::kInvalidArgument) return 1;
    fmt::print(stderr, "{}", conformance::kUsage);
    return 2;
  }
}
