#include "bench/ladder.hpp"
#include "bench/matvec.hpp"
#include "bench/prefill.hpp"
#include "cli/commands.hpp"

namespace tessera::cli {
namespace {

/// Figures and what they say; a wrong result is a failure, a slow one is not.
template <typename Report>
int conclude(const Report& report, bool json) {
  if (json) {
    print_json(to_json(report));
  } else {
    out("\n{}\n", verdict(report));
  }
  return report.agrees() ? kExitOk : kExitFailure;
}

void add_matvec(CLI::App& parent, Action& action) {
  struct Flags {
    bench::MatvecOptions bench;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(
      parent, action, "matvec",
      "A matrix times a vector: one chain of sums against four, at -O0 and at -O3, on one thread",
      "  tessera bench matvec\n"
      "  tessera bench matvec --rows 512 --cols 1000 --json",
      [flags] {
        const bench::MatvecReport report = run_matvec(flags->bench);
        if (!flags->json) out("{}", describe(report));
        return conclude(report, flags->json);
      });
  CLI::Option* rows = command
                          ->add_option("--rows", flags->bench.rows,
                                       "Of a matrix of another size than 4096x4096 and 1448x1448")
                          ->check(integer_between(1, 1 << 16));
  CLI::Option* cols = command->add_option("--cols", flags->bench.cols, "Its columns")
                          ->check(integer_between(1, 1 << 16));
  rows->needs(cols);
  cols->needs(rows);
  command->add_flag("--json", flags->json, "Print one JSON object");
}

void add_prefill(CLI::App& parent, Action& action) {
  struct Flags {
    bench::PrefillOptions bench;
    bool no_large = false, json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(
      parent, action, "prefill", "A prompt in chunks: what rereading the weights costs",
      "  tessera bench prefill\n"
      "  tessera bench prefill --no-large --threads 1 --json",
      [flags] {
        flags->bench.large = !flags->no_large;
        const bool shows = is_terminal(stderr);
        const bench::PrefillReport report = run_prefill(flags->bench, [&](const std::string& what) {
          if (shows) note("[measuring {}]", what);
        });
        if (!flags->json) out("{}", describe(report));
        return conclude(report, flags->json);
      });
  command
      ->add_option("-t,--threads", flags->bench.n_threads, "CPU threads; 0: as many as may be used")
      ->check(integer_between(0, 1024))
      ->capture_default_str();
  command->add_option("--tokens", flags->bench.tokens, "Rows of the activations")
      ->check(integer_between(2, 1 << 16))
      ->capture_default_str();
  command->add_option("--width", flags->bench.width, "Features in and out of the square of weights")
      ->check(integer_between(64, 1 << 13))
      ->capture_default_str();
  command->add_flag("--no-large", flags->no_large,
                    "Without 16384 tokens of width 2048 and the matrix larger than every cache");
  command->add_flag("--json", flags->json, "Print one JSON object");
}

void add_gemm_ladder(CLI::App& parent, Action& action) {
  struct Flags {
    bench::LadderOptions bench;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      add_command(parent, action, "gemm-ladder",
                  "From three loops to the engine's matrix product: what each idea gains",
                  "  tessera bench gemm-ladder\n"
                  "  tessera bench gemm-ladder --size 512 --threads 2 --json",
                  [flags] {
                    if (!flags->json) out("{}", bench::ladder_heading());
                    const bench::LadderReport report = run_ladder(
                        flags->bench, [&](const bench::LadderReport& so_far, size_t i_step) {
                          if (flags->json) return;
                          out("{}", ladder_line(so_far, i_step));
                          flush_out();
                        });
                    return conclude(report, flags->json);
                  });
  command->add_option("--size", flags->bench.size, "Of three square f32 matrices")
      ->check(integer_between(64, 8192))
      ->check(CLI::Validator(
          [](std::string& text) {
            return std::stoll(text) % 64 == 0 ? "" : "expected a multiple of 64";
          },
          ""))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", flags->bench.n_threads,
                   "CPU threads of the last steps; 0: as many as may be used")
      ->check(integer_between(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--runs", flags->bench.runs, "Of each step but the naive one, which runs once")
      ->check(integer_between(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object");
}

}  // namespace

void add_bench_exercises(CLI::App& bench, Action& action) {
  add_matvec(bench, action);
  add_prefill(bench, action);
  add_gemm_ladder(bench, action);
}

}  // namespace tessera::cli
