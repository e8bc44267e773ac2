#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "api/devices.hpp"
#include "base/thread_team.hpp"
#include "cli/commands.hpp"
#include "cli/model_flags.hpp"
#include "tessera/tessera.hpp"

namespace tessera::cli {
namespace {

struct Machine {
  std::string system;
  int64_t memory_bytes = 0, available_bytes = 0;
  unsigned n_cpus = 0;
  int n_allowed_cpus = 0;
};

/// A figure of /proc/meminfo in bytes; 0 when it is not there.
int64_t memory_figure(std::string_view key) {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    int64_t kib = 0;
    if (word == key && info >> kib) return kib * 1024;
  }
  return 0;
}

Machine inspect_machine() {
  utsname system = {};
  uname(&system);
  return {.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine),
          .memory_bytes = memory_figure("MemTotal:"),
          .available_bytes = memory_figure("MemAvailable:"),
          .n_cpus = std::thread::hardware_concurrency(),
          .n_allowed_cpus = available_cpus()};
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

/// "23.5 GiB"; WebGPU does not tell how much memory a GPU has.
std::string memory_text(const DeviceInfo& device) {
  if (device.memory_bytes <= 0) return "memory unknown";
  return human_bytes(static_cast<double>(device.memory_bytes));
}

/// What to do about kinds of devices of which there is none here: (kind, hint).
std::vector<std::pair<std::string, std::string>> missing_devices() {
  std::vector<std::pair<std::string, std::string>> missing;
  bool has_webgpu = false;
  for (const DeviceKind& kind : device_registry().kinds()) {
    has_webgpu = has_webgpu || kind.name == "webgpu";
    if (kind.list().empty()) missing.emplace_back(kind.name, kind.hint);
  }
  if (!has_webgpu) {
    missing.emplace_back("webgpu", "this build lacks it; tools/fetch_wgpu.py gets what it needs");
  }
  return missing;
}

int doctor(bool json) {
  const Machine machine = inspect_machine();
  const std::vector<DeviceInfo> found = devices();
  const std::filesystem::path model = default_model_path();
  std::error_code error;
  const bool has_model = std::filesystem::is_regular_file(model, error);
  if (json) {
    Json device_list = Json::array();
    for (const DeviceInfo& device : found) {
      device_list.push_back(
          {{"spec", device.spec},
           {"name", device.name},
           {"memory_bytes", device.memory_bytes > 0 ? Json(device.memory_bytes) : Json(nullptr)},
           {"features", device.features}});
    }
    Json missing_list = Json::object();
    for (const auto& [kind, hint] : missing_devices()) missing_list[kind] = hint;
    print_json({{"version", version()},
                {"compiler", compiler()},
                {"system", machine.system},
                {"cpus", machine.n_cpus},
                {"allowed_cpus", machine.n_allowed_cpus},
                {"memory_bytes", machine.memory_bytes},
                {"available_bytes", machine.available_bytes},
                {"devices", device_list},
                {"missing_devices", missing_list},
                {"default_model", {{"path", model.string()}, {"present", has_model}}}});
    return kExitOk;
  }
  out("tessera     {}, built with {}\n", version(), compiler());
  out("system      {}\n", machine.system);
  out("processors  {} of {} may be used\n", machine.n_allowed_cpus, machine.n_cpus);
  out("memory      {}, {} available\n", human_bytes(static_cast<double>(machine.memory_bytes)),
      human_bytes(static_cast<double>(machine.available_bytes)));
  for (const DeviceInfo& device : found) {
    out("device      {}: {}, {}; {}\n", device.spec, device.name, memory_text(device),
        fmt::join(device.features, ", "));
  }
  for (const auto& [kind, hint] : missing_devices()) out("no {:<8} {}\n", kind, hint);
  out("model       {}{}\n", model.string(),
      has_model ? "" : ": missing; tools/fetch_default_model.py gets it");
  flush_out();
  return kExitOk;
}

}  // namespace

int list_devices() {
  for (const DeviceInfo& device : devices()) {
    out("{:<10} {}, {}\n", device.spec, device.name, memory_text(device));
  }
  flush_out();
  return kExitOk;
}

void add_doctor(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command =
      add_command(app, action, "doctor", "Show what this machine offers and what is missing",
                  "  tessera doctor\n  tessera doctor --json", [json] { return doctor(*json); });
  command->add_flag("--json", *json, "Print one object");
}

}  // namespace tessera::cli
