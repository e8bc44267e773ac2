#pragma once

#include <vector>

#include "cpu/isa.hpp"
#include "device/kernel_table.hpp"

namespace tessera {

/// Fills the table with every row that runs on a CPU with these tiers (best first): kernels, then
/// compositions, then the references (refused unless the table allows them).
void add_cpu_rows(KernelTable& table, const std::vector<cpu::Tier>& tiers);

}  // namespace tessera
