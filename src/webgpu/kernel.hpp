#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::webgpu {

/// A value that a template may use: a number, or a piece of text such as a type's name.
using TemplateValue = std::variant<int64_t, std::string>;
using TemplateValues = std::vector<std::pair<std::string, TemplateValue>>;

/// A WGSL file, what its template is expanded with, and where to enter it.
struct Kernel {
  std::string file;  ///< below src/: "ops/norm/norm_rows.wgsl"
  std::string entry = "main";
  TemplateValues values = {};
  std::string source = {};  ///< text to use instead of the file's (tests)

  /// For messages and caches: file, entry and values.
  std::string label() const;
};

enum class BindingKind : uint8_t { kRead, kReadWrite, kUniform };

/// Workgroups. Each at most Capabilities::max_grid.
struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

}  // namespace tessera::webgpu
