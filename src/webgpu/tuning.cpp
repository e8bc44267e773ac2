#include "webgpu/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace tessera::webgpu {

extern const std::string_view kTuningJson;  // generated from tuning.json

namespace {

using Json = nlohmann::ordered_json;

std::vector<KernelConfig> parse_configs(const Json& kernels) {
  std::vector<KernelConfig> configs;
  for (const auto& [kernel, list] : kernels.items()) {
    for (const Json& numbers : list) configs.push_back({kernel, numbers});
  }
  return configs;
}

struct Data {
  std::vector<Tuning> tunings;
  std::vector<KernelConfig> candidates;
};

Data parse() {
  const Json json = Json::parse(kTuningJson);
  Data data = {{}, parse_configs(json.at("candidates"))};
  for (const Json& family : json.at("families")) {
    data.tunings.push_back(
        {family.at("name"), family.at("names_match"), parse_configs(family.at("kernels"))});
  }
  for (Tuning& tuning : data.tunings) {
    for (const KernelConfig& config : data.tunings.back().configs) {
      if (&tuning == &data.tunings.back()) break;
      const auto own =
          std::find_if(tuning.configs.begin(), tuning.configs.end(),
                       [&](const KernelConfig& other) { return other.kernel == config.kernel; });
      if (own == tuning.configs.end()) {
        for (KernelConfig& shared : data.tunings.back().of(config.kernel)) {
          tuning.configs.push_back(std::move(shared));
        }
      }
    }
  }
  return data;
}

const Data& data() {
  static const Data parsed = parse();
  return parsed;
}

std::vector<KernelConfig> only(const std::vector<KernelConfig>& configs, std::string_view kernel) {
  std::vector<KernelConfig> result;
  for (const KernelConfig& config : configs) {
    if (config.kernel == kernel) result.push_back(config);
  }
  return result;
}

std::vector<Tuning> make_single_tunings() {
  std::map<std::string, std::vector<KernelConfig>> distinct;
  for (const Tuning& tuning : tunings()) {
    for (const KernelConfig& config : tuning.configs) {
      auto& seen = distinct[config.kernel];
      if (std::find(seen.begin(), seen.end(), config) == seen.end()) seen.push_back(config);
    }
  }
  size_t n = 0;
  for (const auto& [kernel, configs] : distinct) n = std::max(n, configs.size());
  std::vector<Tuning> result;
  for (size_t i = 0; i < n; ++i) {
    Tuning single = {.name = fmt::format("single {}", i), .names_match = {}, .configs = {}};
    for (const auto& [kernel, configs] : distinct) {
      single.configs.push_back(configs[std::min(i, configs.size() - 1)]);
    }
    result.push_back(std::move(single));
  }
  return result;
}

}  // namespace

int64_t KernelConfig::operator[](std::string_view name) const {
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  fail(ErrorKind::kInvalidArgument, kernel, "the configuration {{{}}} has no '{}'", to_string(),
       name);
}

std::string KernelConfig::to_string() const {
  std::string text;
  for (const auto& [name, number] : numbers) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number);
  }
  return text;
}

std::vector<KernelConfig> Tuning::of(std::string_view kernel) const {
  return only(configs, kernel);
}

const std::vector<Tuning>& tunings() {
  return data().tunings;
}

const Tuning& tuning_for(std::string_view adapter_name) {
  const auto in_family = [&](const Tuning& tuning) {
    return std::any_of(
        tuning.names_match.begin(), tuning.names_match.end(),
        [&](const std::string& part) { return adapter_name.find(part) != std::string_view::npos; });
  };
  const auto found = std::find_if(tunings().begin(), tunings().end(), in_family);
  return found == tunings().end() ? tunings().back() : *found;
}

std::vector<KernelConfig> candidates(std::string_view kernel) {
  return only(data().candidates, kernel);
}

const std::vector<Tuning>& single_tunings() {
  static const std::vector<Tuning> result = make_single_tunings();
  return result;
}

}  // namespace tessera::webgpu
