#include "support_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "cpu/isa.hpp"
#include "ops/all_ops.hpp"
#include "ops/cases.hpp"
#include "ops/cpu_rows.hpp"
#ifdef TESSERA_HAS_WEBGPU
#include "ops/webgpu_rows.hpp"
#include "webgpu/tuning.hpp"
#endif

namespace tessera::conformance {
namespace {

/// "w" for "w", "w0" and "w2": members of a group are told together.
std::string family_of(std::string_view tensor) {
  const size_t end = tensor.find_last_not_of("0123456789");
  return std::string(tensor.substr(0, end + 1));
}

/// Types of each family of tensors of a case, in the order of the arguments.
using Types = std::vector<std::pair<std::string, std::vector<DType>>>;

template <typename Op>
Types types_of(const Case<Op>& c) {
  Types types;
  Op::visit(c.args, [&](std::string_view tensor, const Tensor& value, Access) {
    if (!value.defined()) return;
    const std::string family = family_of(tensor);
    auto found = std::find_if(types.begin(), types.end(),
                              [&](const auto& entry) { return entry.first == family; });
    if (found == types.end()) found = types.insert(types.end(), {family, {}});
    std::vector<DType>& dtypes = found->second;
    if (std::find(dtypes.begin(), dtypes.end(), value.dtype) == dtypes.end()) {
      dtypes.push_back(value.dtype);
    }
  });
  return types;
}

/// Families whose type is not the same in all cases. One that always has the type of another is
/// told by that one.
template <typename Op>
std::vector<std::string> varying_families(const std::vector<Case<Op>>& all_cases) {
  std::map<std::string, std::vector<std::vector<DType>>> columns;
  std::vector<std::string> order;
  for (const Case<Op>& c : all_cases) {
    for (const auto& [family, dtypes] : types_of(c)) {
      if (columns.find(family) == columns.end()) order.push_back(family);
      columns[family].push_back(dtypes);
    }
  }
  std::vector<std::string> result;
  std::set<std::vector<std::vector<DType>>> seen;
  for (const std::string& family : order) {
    const auto& column = columns[family];
    const bool varies =
        std::adjacent_find(column.begin(), column.end(), std::not_equal_to<>()) != column.end();
    if (varies && seen.insert(column).second) result.push_back(family);
  }
  return result;
}

/// The combination of types that a case belongs to, in two parts: what comes before the last type,
/// and that type. "x q8, w " and "q4_0"; several types in one family are joined with "+".
struct Variant {
  std::string head, last;
  bool operator==(const Variant&) const = default;
};

template <typename Op>
Variant variant_of(const Case<Op>& c, const std::vector<std::string>& varying) {
  Variant variant = {"", "f32"};
  std::string text;
  for (const auto& [family, dtypes] : types_of(c)) {
    if (std::find(varying.begin(), varying.end(), family) == varying.end()) continue;
    std::string joined;
    for (const DType dtype : dtypes) {
      joined += joined.empty() ? "" : "+";
      joined += name(dtype);
    }
    variant.head = text + family + " ";
    variant.last = joined;
    text = variant.head + joined + "; ";
  }
  return variant;
}

/// A device: its column, and what its rows are told about it.
struct Column {
  Caps caps;
  KernelTable table;
};

struct Counts {
  int n_cases = 0;
  // By what serves them: an instruction set, a capability tier, or "composed".
  std::map<std::string, int> n_served = {};
};

std::string cell(const Counts& counts) {
  std::vector<std::string> servers;
  for (int tier = 0; tier < cpu::kNumTiers; ++tier) {
    servers.emplace_back(cpu::name(static_cast<cpu::Tier>(tier)));
  }
  servers.insert(servers.end(), {"core", "composed"});
  std::vector<std::string> parts;
  for (const std::string& server : servers) {
    const auto found = counts.n_served.find(server);
    if (found == counts.n_served.end()) continue;
    parts.push_back(found->second == counts.n_cases ? server : server + " (some shapes)");
  }
  return parts.empty() ? "—" : fmt::format("{}", fmt::join(parts, ", "));
}

/// What serves a case on a device.
template <typename Op>
std::set<std::string> servers_of(const Case<Op>& c, const Column& column) {
  std::set<std::string> servers;
  for (const Row<Op>& row : column.table.rows<Op>()) {
    if (row.traits.reference || !row.supports(c.args, column.caps)) continue;
    servers.insert(row.traits.composed ? "composed" : std::string(row.traits.isa));
  }
  return servers;
}

template <typename Op>
std::string lines_of(const std::vector<Column>& columns) {
  const std::vector<Case<Op>> all_cases = cases<Op>();
  const std::vector<std::string> varying = varying_families(all_cases);
  std::vector<std::pair<Variant, std::vector<Counts>>> variants;
  for (const Case<Op>& c : all_cases) {
    const Variant variant = variant_of(c, varying);
    auto found = std::find_if(variants.begin(), variants.end(),
                              [&](const auto& entry) { return entry.first == variant; });
    if (found == variants.end()) {
      found = variants.insert(variants.end(), {variant, std::vector<Counts>(columns.size())});
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      ++found->second[i].n_cases;
      for (const std::string& server : servers_of(c, columns[i])) {
        ++found->second[i].n_served[server];
      }
    }
  }
  // Variants that differ in their last type alone and are served alike share a line.
  std::vector<std::pair<Variant, std::string>> lines;
  for (const auto& [variant, counts] : variants) {
    std::vector<std::string> cells;
    for (const Counts& of_device : counts) cells.push_back(cell(of_device));
    const std::string served = fmt::format("{}", fmt::join(cells, " | "));
    const auto found =
        std::find_if(lines.begin(), lines.end(), [&, &head = variant.head](const auto& line) {
          return line.first.head == head && line.second == served;
        });
    if (found == lines.end()) {
      lines.emplace_back(variant, served);
    } else {
      found->first.last += ", " + variant.last;
    }
  }
  std::string text;
  for (const auto& [variant, served] : lines) {
    text += fmt::format("| {} | {}{} | {} |\n", text.empty() ? Op::kName : "", variant.head,
                        variant.last, served);
  }
  return text;
}

/// Every device that the project has rows for or will have, whatever runs on this machine.
std::vector<Column> all_columns() {
  std::vector<Column> columns(3);
  columns[0].caps.kind = "cpu";
  columns[1].caps.kind = "webgpu";
  columns[2].caps.kind = "cuda";
  std::vector<cpu::Tier> tiers;
  for (int tier = cpu::kNumTiers - 1; tier >= 0; --tier) {
    tiers.push_back(static_cast<cpu::Tier>(tier));
  }
  add_cpu_rows(columns[0].table, tiers);
#ifdef TESSERA_HAS_WEBGPU
  // The limits that every implementation has.
  webgpu::Capabilities core;
  core.max_binding_bytes = int64_t{128} << 20;
  core.max_buffer_bytes = int64_t{256} << 20;
  core.max_workgroup_bytes = 16384;
  core.max_workgroup_threads = 256;
  core.max_grid = 65535;
  core.max_storage_buffers = 8;
  core.tuning = &webgpu::tuning_for("");
  add_webgpu_rows(columns[1].table, core);
#endif
  return columns;
}

}  // namespace

std::string support_table() {
  const std::vector<Column> columns = all_columns();
  std::string text =
      "# What runs where\n\n"
      "Generated by `ops_test --support`; a test fails when it and the code differ. For every "
      "operation and every combination of types that its cases use (tensors that always have the "
      "same "
      "type are left out): the instruction sets for which a kernel exists on each device (x86-64; "
      "on aarch64 neon stands for avx2, dotprod for avx512vnni); on WebGPU the capabilities that "
      "it needs (\"core\": none). "
      "\"composed\": recorded as other operations of this table, where those have kernels. "
      "\"(some shapes)\": not for every shape or option of the cases. \"—\": no kernel; only the "
      "f64 reference, which the CPU refuses to use unless told to.\n\n"
      "| operation | types | cpu | webgpu | cuda |\n"
      "|---|---|---|---|---|\n";
#define TESSERA_SUPPORT_LINES(Op) text += lines_of<Op>(columns);
  TESSERA_FOR_EACH_OP(TESSERA_SUPPORT_LINES)
#undef TESSERA_SUPPORT_LINES
  return text;
}

}  // namespace tessera::conformance
