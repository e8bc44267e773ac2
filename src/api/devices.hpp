#pragma once

#include "device/registry.hpp"

namespace tessera {

/// The kinds of devices in this build: "cpu", and "mock" for tests (a CPU whose memory behaves like
/// a GPU's).
const DeviceRegistry& device_registry();

}  // namespace tessera
