// Files that the reader accepts but no model can be made of: tests/hostile/model, with what their
// error has to name in manifest.json.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/tessera.hpp"

namespace tessera {
namespace {

TEST(HostileModel, EveryFileGivesOneErrorThatNamesTheFault) {
  const std::string folder = std::string(TESSERA_TEST_DATA) + "/hostile/";
  std::ifstream stream(folder + "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(stream);
  int n_files = 0;
  for (const nlohmann::json& entry : manifest) {
    if (entry["level"] != "model") continue;
    ++n_files;
    const std::string file = entry["file"].get<std::string>();
    try {
      Model::load(folder + file, {.n_threads = 1, .allow_reference = true});
      ADD_FAILURE() << file << " was loaded";
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kInvalidFile ||
                  error.kind() == ErrorKind::kUnsupported)
          << file << ": " << error.what();
      const std::string what = error.what();
      EXPECT_NE(what.find(entry["expect"].get<std::string>()), std::string::npos) << what;
      EXPECT_EQ(what.rfind(folder + file, 0), 0u) << "does not begin with the file: " << what;
      EXPECT_EQ(what.find_first_of("\n\x1b"), std::string::npos) << "not one clean line: " << what;
    }
  }
  EXPECT_GT(n_files, 50);
}

}  // namespace
}  // namespace tessera
