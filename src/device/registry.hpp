#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/kernel_table.hpp"

namespace tessera {

struct DeviceOptions {
  int n_threads = 0;  ///< CPU team, the calling thread included; 0: available_cpus()
  std::string isa;    ///< highest CPU tier to use: "portable", "avx2", ...; empty: the best
  bool default_limits = false;  ///< GPU: ask for no more than every implementation has
  bool runtime_checks = false;  ///< GPU: kernels with bounds checks
  /// GPU: which of DeviceKind::n_tunings() ways to run tunable kernels; -1: the device's own.
  int tuning = -1;
};

/// A kind of device: how to find, make and equip it. Registered explicitly by the api room, since
/// static initialisers vanish from archives.
struct DeviceKind {
  std::string name;       ///< "cpu"
  std::string hint = {};  ///< what to do where list() is empty
  std::function<std::vector<Caps>()> list;
  std::function<std::unique_ptr<Device>(int index, const DeviceOptions&)> make;
  std::function<KernelTable(const Device&, const DeviceOptions&)> make_table;
  /// Every configuration of a row with RowTraits::tuned is in one of so many tunings (tests).
  std::function<int()> n_tunings = nullptr;
};

class DeviceRegistry {
 public:
  void add(DeviceKind kind) { kinds_.push_back(std::move(kind)); }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }

  struct Choice {
    const DeviceKind* kind;
    int index;
  };
  /// Parses "cpu", "webgpu:1"; throws Error{kInvalidArgument} that lists the known kinds.
  Choice find(std::string_view spec) const;

 private:
  std::vector<DeviceKind> kinds_;
};

}  // namespace tessera
