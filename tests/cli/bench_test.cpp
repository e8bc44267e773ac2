#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "program.hpp"
#include "support/tiny_model.hpp"

namespace tessera::test {
namespace {

const std::vector<std::string> kQuick = {"--warmup", "0", "--iters", "3", "--min-time", "0"};

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(CliBench, OpsPrintsARowForEveryKernel) {
  std::vector<std::string> arguments = {"bench",    "ops",     "--op",    "matmul", "--shape",
                                        "3x64x128", "--dtype", "q4_1/q8", "--json"};
  arguments.insert(arguments.end(), kQuick.begin(), kQuick.end());
  const Outcome outcome = run_tessera(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto rows = json_lines(outcome.out);
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    EXPECT_EQ(row["op"], "matmul");
    EXPECT_EQ(row["shape"], "3x64x128");
    EXPECT_EQ(row["dtype"], "q4_1/q8");
    EXPECT_EQ(row["flops"], 2.0 * 3 * 64 * 128);
    EXPECT_GE(row["iterations"], 3);
    EXPECT_LT(row["error"], 1e-5) << row;
  }
}

TEST(CliBench, ShapeLimitsTheCases) {
  std::vector<std::string> arguments = {"bench", "ops", "--op", "softmax", "--json"};
  arguments.insert(arguments.end(), kQuick.begin(), kQuick.end());
  const auto all = json_lines(run_tessera(arguments).out);
  ASSERT_GT(all.size(), 1U);
  const std::string shape = all.front()["shape"];
  arguments.insert(arguments.end(), {"--shape", shape});
  const auto some = json_lines(run_tessera(arguments).out);
  ASSERT_FALSE(some.empty());
  EXPECT_LT(some.size(), all.size());
  for (const auto& row : some) EXPECT_EQ(row["shape"], shape);
}

TEST(CliRoofline, JsonHasCeilingsAndWhatIsMissing) {
  const Outcome outcome = run_tessera(
      {"roofline", "--no-points", "--rounds", "1", "--largest", "1", "--threads", "2", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_FALSE(json["machine"].get<std::string>().empty());
  ASSERT_EQ(json["ceilings"].size(), 2U);
  EXPECT_EQ(json["ceilings"][0]["threads"], 1);
  EXPECT_EQ(json["ceilings"][1]["threads"], 2);
  for (const auto& ceilings : json["ceilings"]) {
    // Each kind of arithmetic has a figure or a reason.
    EXPECT_EQ(ceilings["peaks"].size() + json["missing"].size(), 5U) << json["missing"];
    EXPECT_GT(ceilings["peaks"]["f32"]["gops"], 0);
    EXPECT_EQ(ceilings["levels"].back()["level"], "memory");
    EXPECT_EQ(ceilings["sweep"].size(), json["latency"].size());
    for (const auto& figure : ceilings["sweep"]) {
      EXPECT_GT(figure["read_gbs"], 0);
      EXPECT_GT(figure["copy_gbs"], 0);
    }
  }
  EXPECT_EQ(json["latency"].back()["working_set_bytes"], 1 << 20);
  EXPECT_TRUE(json["points"].empty());
}

TEST(CliRoofline, DrawsEveryPointAndTablesThem) {
  const TempFolder folder;
  const std::string picture = (folder / "roof.svg").string();
  const Outcome outcome = run_tessera(
      {"roofline", "--rounds", "1", "--largest", "1", "--threads", "1", "--svg", picture});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string svg = read_file(picture);
  // The kernels that stand for the default model exist: none is reported as missing.
  EXPECT_EQ(outcome.out.find("no kernel for"), std::string::npos) << outcome.out;
  for (const char* label : {"QKV", "gate and up", "attention out", "head", "f32 1024³"}) {
    EXPECT_NE(outcome.out.find(label), std::string::npos) << label;
    EXPECT_NE(svg.find(std::string(">") + label), std::string::npos) << label;
  }
}

TEST(CliExercise, MatvecKernelsAgreeInBothBuilds) {
  // Odd columns: a tail behind the vectors.
  const Outcome outcome =
      run_tessera({"bench", "matvec", "--rows", "37", "--cols", "101", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_LT(json["largest_difference"], 1e-3);
  std::set<std::string> builds;
  for (const auto& row : json["rows"]) {
    builds.insert(row["build"]);
    EXPECT_EQ(row["bytes"], 4 * (37 * 101 + 101));
    EXPECT_GT(row["gbs"], 0);
  }
  EXPECT_EQ(builds, (std::set<std::string>{"-O0", "-O3"}));
  EXPECT_NE(json["verdict"].get<std::string>().find("GB/s"), std::string::npos);
}

TEST(CliExercise, PrefillChunksAgreeAndCountTheirReads) {
  const Outcome outcome =
      run_tessera({"bench", "prefill", "--tokens", "300", "--width", "64", "--no-large", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_LE(json["chunk_difference"], 1e-4);
  ASSERT_EQ(json["chunks"].size(), 3U);
  const double weights = 4.0 * 64 * 64;
  EXPECT_EQ(json["chunks"][0]["chunk"], 128);
  EXPECT_EQ(json["chunks"][0]["weight_bytes"], 3 * weights);  // 128 + 128 + 44 tokens
  EXPECT_EQ(json["chunks"][2]["chunk"], 300);
  EXPECT_EQ(json["chunks"][2]["layer_weight_bytes"], 4 * weights);
  ASSERT_EQ(json["two_layers"].size(), 2U);
  EXPECT_EQ(json["two_layers"][1]["chunk"], 128);
  EXPECT_LE(json["two_layers_difference"], 1e-3);
  EXPECT_EQ(json["matvec"][0]["rows"], 2048);
  EXPECT_NE(json["verdict"].get<std::string>().find("the best chunk is"), std::string::npos);
}

TEST(CliExercise, LadderStepsComputeTheSameProduct) {
  // Two blocks of depth and a part of one of columns.
  const Outcome outcome = run_tessera(
      {"bench", "gemm-ladder", "--size", "320", "--threads", "2", "--runs", "1", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  std::vector<std::string> names;
  for (const auto& row : json["rows"]) {
    names.push_back(row["step"]);
    EXPECT_LT(row["error"], 1e-5) << row;
    EXPECT_GT(row["gflops"], 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"naive", "vectorised", "blocked", "packed",
                                             "micro-kernel", "threaded", "engine"}));
  EXPECT_NE(json["verdict"].get<std::string>().find("320x320x320"), std::string::npos);
}

class CliModelBench : public testing::Test {
 protected:
  void SetUp() override {
    model_ = (folder_ / "tiny.gguf").string();
    TinyModelOptions options;
    options.dtype = DType::kQ8_0;
    write_tiny_model(model_, options);
  }
  Outcome run(const std::string& format) const {
    return run_tessera(
        {"bench", "model", model_, "-p", "16", "-n", "4", "-d", "0,8", "-r", "2", "-o", format});
  }
  TempFolder folder_;
  std::string model_;
};

TEST_F(CliModelBench, JsonHasTheFieldsOfLlamaBench) {
  const Outcome outcome = run("json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto tests = outcome.json();
  ASSERT_EQ(tests.size(), 4U);
  const std::vector<std::array<int, 3>> expected = {{16, 0, 0}, {0, 4, 0}, {16, 0, 8}, {0, 4, 8}};
  for (size_t i = 0; i < tests.size(); ++i) {
    const auto& test = tests[i];
    EXPECT_EQ(test["n_prompt"], expected[i][0]);
    EXPECT_EQ(test["n_gen"], expected[i][1]);
    EXPECT_EQ(test["n_depth"], expected[i][2]);
    for (const char* key :
         {"build_commit",   "cpu_info", "backends",  "model_filename", "model_type", "model_size",
          "model_n_params", "n_batch",  "n_ubatch",  "n_threads",      "type_k",     "type_v",
          "test_time",      "avg_ns",   "stddev_ns", "avg_ts",         "stddev_ts",  "samples_ns",
          "samples_ts",     "roof_ts",  "roof_share"}) {
      EXPECT_TRUE(test.contains(key)) << key;
    }
    EXPECT_EQ(test["samples_ns"].size(), 2U);
    const double n_tokens = expected[i][0] + expected[i][1];
    EXPECT_NEAR(test["samples_ts"][0].get<double>(),
                n_tokens * 1e9 / test["samples_ns"][0].get<double>(), 1e-6 * n_tokens * 1e9);
    EXPECT_GT(test["roof_ts"], 0);
    EXPECT_GT(test["roof_share"], 0);
  }
}

TEST_F(CliModelBench, SequencesGenerateTogetherAndEachOpIsTimed) {
  const Outcome outcome = run_tessera({"bench", "model", model_, "-p", "16", "-n", "4", "-r", "1",
                                       "--parallel", "1,3", "--ops", "-o", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto tests = outcome.json();
  ASSERT_EQ(tests.size(), 3U);
  const std::vector<std::array<int, 4>> expected = {{16, 0, 1, 1}, {0, 4, 1, 5}, {0, 4, 3, 5}};
  for (size_t i = 0; i < tests.size(); ++i) {
    const auto& test = tests[i];
    EXPECT_EQ(test["n_parallel"], expected[i][2]);
    const double n_tokens = (expected[i][0] + expected[i][1]) * expected[i][2];
    EXPECT_NEAR(test["samples_ts"][0].get<double>() * test["samples_ns"][0].get<double>(),
                n_tokens * 1e9, 1);
    // One attention a layer (the model has two) and step: of the prompt, or of the first token and
    // each later one.
    std::map<std::string, int> launches;
    for (const auto& time : test["ops"]) {
      launches[time["op"]] = time["launches"];
      EXPECT_GT(time["ns"], 0);
    }
    EXPECT_EQ(launches["paged_attention"], 2 * expected[i][3]);
    EXPECT_EQ(launches.count("norm_linear_group"), 0U) << "made of others, which are timed";
  }
  EXPECT_EQ(run_tessera({"bench", "model", model_, "--parallel", "2", "-d", "4"}).exit_code, 2);
  EXPECT_EQ(run_tessera({"bench", "model", model_, "--ops", "--trace-tensors", "/tmp/x"}).exit_code,
            2);
}

TEST_F(CliModelBench, MarkdownAndCsvAreTables) {
  const std::string markdown = run("md").out;
  for (const char* part : {"| test | t/s |", "| pp16 | ", "| tg4 | ", "| pp16 @ d8 | ", " ± "}) {
    EXPECT_NE(markdown.find(part), std::string::npos) << part << " in " << markdown;
  }
  std::istringstream csv(run("csv").out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(csv, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines[0].starts_with("build_commit,cpu_info,")) << lines[0];
}

}  // namespace
}  // namespace tessera::test
