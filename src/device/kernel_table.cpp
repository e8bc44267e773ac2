#include "device/kernel_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace tessera {

void KernelTable::force(std::string_view op, std::string_view row) {
  if (rows_.find(std::string(op)) == rows_.end()) {
    fail(ErrorKind::kInvalidArgument, "force", "no operation is called '{}'; there are {}", op,
         fmt::join(ops(), ", "));
  }
  const std::vector<std::string> names = row_names(op);
  if (std::find(names.begin(), names.end(), row) == names.end()) {
    fail(ErrorKind::kInvalidArgument, "force", "{} has no row '{}'; it has {}", op, row,
         fmt::join(names, ", "));
  }
  forced_[std::string(op)] = row;
}

std::vector<std::string> KernelTable::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, rows] : rows_) names.push_back(op);
  return names;
}

std::vector<std::string> KernelTable::row_names(std::string_view op) const {
  const auto found = rows_.find(std::string(op));
  return found == rows_.end() ? std::vector<std::string>{} : found->second->names();
}

void KernelTable::refuse(std::string_view op, const Caps& caps) const {
  const auto forced = forced_.find(std::string(op));
  if (forced != forced_.end()) {
    fail(ErrorKind::kUnsupported, std::string(op),
         "the forced row '{}' does not support these arguments; force another or none",
         forced->second);
  }
  fail(ErrorKind::kUnsupported, std::string(op),
       "no kernel on {} supports these arguments (rows: {}){}", caps.kind,
       fmt::join(row_names(op), ", "),
       allow_reference_ ? "" : "; --allow-reference would run the slow reference");
}

}  // namespace tessera
