#pragma once

#include <cstdint>

namespace tessera {

enum class NormKind : uint8_t { kRms, kLayer };

}  // namespace tessera
