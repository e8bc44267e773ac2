#include <gtest/gtest.h>

#include <cctype>

#include "program.hpp"

namespace tessera::test {
namespace {

struct HostileFile {
  std::string path;
  std::string name;
};

std::vector<HostileFile> hostile_files() {
  const std::filesystem::path folder = std::filesystem::path(TESSERA_TEST_DATA) / "hostile";
  const auto manifest = nlohmann::json::parse(read_file(folder / "manifest.json"));
  std::vector<HostileFile> files;
  for (const auto& entry : manifest) {
    std::string name = entry["file"].get<std::string>();
    const std::string path = (folder / name).string();
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    files.push_back({path, name});
  }
  return files;
}

class Hostile : public testing::TestWithParam<HostileFile> {};

TEST_P(Hostile, RunExitsWith3AndOneLine) {
  const Outcome outcome = run_tessera({"run", GetParam().path, "Hello"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
}

TEST_P(Hostile, InfoExitsWith3AndOneLine) {
  const Outcome outcome = run_tessera({"info", GetParam().path});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
  // What is well-formed but cannot run here is still listed.
  if (!outcome.out.empty()) {
    EXPECT_NE(outcome.out.find("runs        no: "), std::string::npos) << outcome.out;
  }
}

std::string name_of(const testing::TestParamInfo<HostileFile>& file) {
  return file.param.name;
}

INSTANTIATE_TEST_SUITE_P(Cli, Hostile, testing::ValuesIn(hostile_files()), name_of);

}  // namespace
}  // namespace tessera::test
