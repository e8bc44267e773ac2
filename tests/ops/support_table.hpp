#pragma once

#include <string>

namespace tessera::conformance {

/// docs/support.md: which rows each device has for each op and each combination of types that its
/// cases use. Rows of every instruction set that is compiled count, whatever this machine runs.
std::string support_table();

}  // namespace tessera::conformance
