#include <fstream>

#include "base/error.hpp"
#include "bench/roofline.hpp"
#include "bench/roofline_svg.hpp"
#include "cli/commands.hpp"

namespace tessera::cli {
namespace {

struct RooflineFlags {
  bench::RooflineOptions bench;
  int64_t largest_mib = 512;
  bool no_points = false;
  bool json = false;
  std::string svg;
};

void write_svg(const std::string& path, const bench::Roofline& roofline) {
  std::ofstream file(path, std::ios::binary);
  file << to_svg(roofline);
  file.close();
  if (!file) fail(ErrorKind::kIo, path, "cannot write the picture");
  note("[the picture is in {}]", path);
}

int run_roofline(RooflineFlags flags) {
  if (!flags.svg.empty()) {  // before the measuring, not behind it
    const std::ofstream file(flags.svg, std::ios::app);
    if (!file) fail(ErrorKind::kIo, flags.svg, "cannot be written");
  }
  flags.bench.largest_bytes = flags.largest_mib << 20;
  flags.bench.points = !flags.no_points;
  const bool shows = is_terminal(stderr);
  const bench::Roofline roofline = measure_roofline(flags.bench, [&](const std::string& what) {
    if (shows) note("[measuring {}]", what);
  });
  if (flags.json) {
    print_json(to_json(roofline));
  } else {
    out("{}", describe(roofline));
  }
  if (!flags.svg.empty()) write_svg(flags.svg, roofline);
  return kExitOk;
}

}  // namespace

void add_roofline(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RooflineFlags>();
  CLI::App* command = add_command(
      app, action, "roofline", "Measure this machine's limits, and where kernels stand below them",
      "  tessera roofline\n"
      "  tessera roofline --svg roofline.svg\n"
      "  tessera roofline --threads 1 --no-points --json",
      [flags] { return run_roofline(*flags); });
  command
      ->add_option("-t,--threads", flags->bench.n_threads,
                   "CPU threads besides the one that is measured alone; 0: as many as may be "
                   "used")
      ->check(integer_between(0, 1024))
      ->capture_default_str();
  command->add_option("--rounds", flags->bench.rounds, "Samples of each limit; the best counts")
      ->check(integer_between(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--largest", flags->largest_mib,
                   "Working set in MiB that stands for main memory")
      ->check(integer_between(1, 512))
      ->capture_default_str();
  command->add_flag("--no-points", flags->no_points, "Only the machine, no kernels");
  command->add_option("--svg", flags->svg, "Draw the log-log plot into this file");
  command->add_flag("--json", flags->json, "Print one JSON object");
}

}  // namespace tessera::cli
