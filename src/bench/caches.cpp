#include "bench/caches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace tessera::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "48K", "2048K", "300M" in bytes; 0 for anything else.
int64_t parse_size(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 12) return 0;
  const int64_t number = std::stoll(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  return unit == "K" ? number << 10 : unit == "M" ? number << 20 : unit.empty() ? number : 0;
}

/// How many CPUs "0-1,4" names; 1 when it cannot be read.
int count_cpus(const std::string& list) {
  int count = 0;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    int first = 0, last = 0;
    const int n_read = std::sscanf(list.substr(at, end - at).c_str(), "%d-%d", &first, &last);
    count += n_read == 2 ? std::max(last - first + 1, 1) : 1;
    at = end + 1;
  }
  return std::max(count, 1);
}

}  // namespace

std::vector<CacheLevel> data_caches(const std::string& folder) {
  std::vector<CacheLevel> caches;
  for (int index = 0;; ++index) {
    const std::string path = fmt::format("{}/index{}/", folder, index);
    const std::string type = first_line(path + "type");
    if (type.empty()) break;
    const int64_t size_bytes = parse_size(first_line(path + "size"));
    if (type == "Instruction" || size_bytes == 0) continue;
    caches.push_back({fmt::format("L{}", first_line(path + "level")), size_bytes,
                      count_cpus(first_line(path + "shared_cpu_list"))});
  }
  std::ranges::sort(caches, {}, &CacheLevel::size_bytes);
  return caches;
}

}  // namespace tessera::bench
