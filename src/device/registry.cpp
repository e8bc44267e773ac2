#include "device/registry.hpp"

#include <fmt/ranges.h>

#include <charconv>

#include "base/error.hpp"

namespace tessera {

DeviceRegistry::Choice DeviceRegistry::find(std::string_view spec) const {
  const size_t colon = spec.find(':');
  const std::string_view wanted = spec.substr(0, colon);
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = spec.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), index);
    if (error != std::errc() || end != digits.end() || index < 0) {
      fail(ErrorKind::kInvalidArgument, "device", "expected a number behind ':' in '{}'", spec);
    }
  }
  std::vector<std::string> names;
  for (const DeviceKind& kind : kinds_) {
    if (kind.name == wanted) {
      const size_t n_devices = kind.list().size();
      if (static_cast<size_t>(index) >= n_devices) {
        fail(ErrorKind::kInvalidArgument, "device", "there is no '{}': {} device(s) of kind {}{}{}",
             spec, n_devices, kind.name, n_devices == 0 && !kind.hint.empty() ? "; " : "",
             n_devices == 0 ? kind.hint : "");
      }
      return {&kind, index};
    }
    names.push_back(kind.name);
  }
  fail(ErrorKind::kInvalidArgument, "device", "expected one of {}, got '{}'",
       fmt::join(names, ", "), spec);
}

}  // namespace tessera
