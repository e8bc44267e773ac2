#include "api/devices.hpp"
#include "cpu/device.hpp"
#include "cpu/isa.hpp"
#include "ops/cpu_rows.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_WEBGPU
#include "ops/webgpu_rows.hpp"
#include "webgpu/kind.hpp"
#endif

namespace tessera {

const DeviceRegistry& device_registry() {
  static const DeviceRegistry registry = [] {
    DeviceRegistry built_in;
    built_in.add(cpu::device_kind(cpu::CpuDevice::Memory::kShared, add_cpu_rows));
    built_in.add(cpu::device_kind(cpu::CpuDevice::Memory::kProtected, add_cpu_rows));
#ifdef TESSERA_HAS_WEBGPU
    built_in.add(webgpu::device_kind(add_webgpu_rows));
#endif
    return built_in;
  }();
  return registry;
}

inline namespace v1 {

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> infos;
  for (const DeviceKind& kind : device_registry().kinds()) {
    if (kind.name == "mock") continue;  // for tests: it is the CPU once more
    int index = 0;
    for (const Caps& caps : kind.list()) {
      DeviceInfo info;
      info.spec = index == 0 ? kind.name : kind.name + ":" + std::to_string(index);
      info.name = caps.name;
      info.memory_bytes = caps.memory_bytes;
      info.features = caps.features;
      if (kind.name == "cpu") {
        for (const cpu::Tier tier : cpu::available_tiers()) info.features.emplace_back(name(tier));
      }
      infos.push_back(std::move(info));
      ++index;
    }
  }
  return infos;
}

}  // namespace v1
}  // namespace tessera
