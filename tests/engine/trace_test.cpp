#include "engine/trace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/tiny_engine.hpp"

namespace tessera {
namespace {

std::vector<nlohmann::json> trace(const std::string& device, std::vector<float>* logits = nullptr) {
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("tessera-trace-{}-{}.jsonl", ::getpid(), device);
  {
    TinyEngineOptions options;
    options.device = device;
    options.engine.trace_tensors = path;
    TinyEngine engine(options);
    const std::vector<float> all = engine.logits(tiny_ids(11, 1), 6);  // steps of 6 and 5 tokens
    if (logits != nullptr) *logits = all;
  }
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  std::filesystem::remove(path);
  return lines;
}

TEST(TensorTrace, IsTheSameOnCpuAndMock) {
  const auto cpu = trace("cpu");
  EXPECT_GT(cpu.size(), 40u);
  EXPECT_EQ(cpu, trace("mock"));
}

TEST(TensorTrace, DescribesTheTensorsOfAStep) {
  std::vector<float> logits;
  const auto lines = trace("cpu", &logits);
  std::set<std::string> ops;
  for (const auto& line : lines) ops.insert(line["op"].get<std::string>());
  for (const char* op : {"gather_rows", "norm_linear_group", "rope_kv_write", "paged_attention",
                         "linear_residual", "norm_gate_up_swiglu", "argmax"}) {
    EXPECT_TRUE(ops.count(op)) << op;
  }
  bool found = false;
  for (const auto& line : lines) {
    if (line["op"] == "rope_kv_write" && line["tensor"] == "k_pages") {
      const int64_t n_tokens = line["step"] == 0 ? 6 : 5;
      EXPECT_EQ(line["shape"], (std::vector<int64_t>{n_tokens, 2, 16}));
    }
    if (line["op"] == "norm_linear_group" && line["step"] == 1 && line["tensor"] == "y0" &&
        line["shape"][1] == static_cast<int64_t>(logits.size() / 11)) {
      found = true;
      EXPECT_EQ(line["shape"][0], 5);
      const size_t begin = logits.size() / 11 * 6;
      double squares = 0;
      for (size_t i = begin; i < logits.size(); ++i) squares += double{logits[i]} * logits[i];
      EXPECT_NEAR(line["l2"].get<double>(), std::sqrt(squares), 1e-6 * std::sqrt(squares));
      EXPECT_NEAR(line["first"][2].get<double>(), logits[begin + 2], 1e-6);
    }
  }
  EXPECT_TRUE(found) << "the logits of the second step";
}

}  // namespace
}  // namespace tessera
