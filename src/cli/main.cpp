#include <exception>
#include <new>

#include "cli/commands.hpp"
#include "cli/signals.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;
using namespace tessera::cli;

namespace {

/// Help without environment variables: each long flag has one, told once in the footer.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return {};
    std::string text;
    if (!option->get_type_name().empty()) text += " " + option->get_type_name();
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    if (option->get_required()) text += " (required)";
    return text;
  }
};

void define(CLI::App& app, Action& action, bool& devices_flag, bool& markdown_flag) {
  app.description("Runs transformer models on this machine.");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "tessera " + std::string(version()));
  app.add_flag("--list-devices", devices_flag, "Show where models can run");
  app.add_flag("--markdown-help", markdown_flag, "Print docs/cli.md")->group("");
  app.footer(
      "Every --flag of a command can be set by the environment variable TESSERA_<FLAG>.\n"
      "Exit codes: 0 ok, 1 failure, 2 usage, 3 invalid file, 4 does not fit in memory,\n"
      "130 interrupted. 'tessera COMMAND --help' shows the flags of a command.");
  app.require_subcommand(0, 1);
  add_run(app, action);
  add_text(app, action);
  add_score(app, action);
  add_info(app, action);
  add_bench(app, action);
  add_roofline(app, action);
  add_diff_trace(app, action);
  add_doctor(app, action);
  for (CLI::App* command : app.get_subcommands(nullptr)) add_environment(*command);
}

/// Parses the arguments; the exit code when nothing is left to do.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& done) {
    app.exit(done);  // --help or --version, on standard output
    flush_out();
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    std::string command = "tessera";
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      command += " " + at->get_name();
    }
    print_error(fmt::format("{} (see {} --help)", error.what(), command));
    return kExitUsage;
  }
}

int run_program(int argc, char** argv, Action& action) {
  CLI::App app;
  bool devices_flag = false, markdown_flag = false;
  define(app, action, devices_flag, markdown_flag);
  if (const auto code = parse(app, argc, argv)) return *code;
  if (action.run) {
    if (devices_flag) {
      print_error("--list-devices has no meaning beside a command");
      return kExitUsage;
    }
    return action.run();
  }
  if (devices_flag) return list_devices();
  if (markdown_flag) {
    write_out(markdown_help(app));
    flush_out();
    return kExitOk;
  }
  print_error("a command is missing (see tessera --help)");
  return kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  install_signal_handlers();
  Action action;
  try {
    return run_program(argc, argv, action);
  } catch (const Error& error) {
    print_error(error.what());
    return exit_code(error, action.model_path);
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kExitDoesNotFit;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kExitFailure;
  }
}
