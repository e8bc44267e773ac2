// The default model against an independent implementation: logits, greedy continuations and the
// likelihood of a text, computed with transformers in f32 and a separate f64 forward pass (they
// agree to 7.4e-5 in the logits). Needs the model file: $TESSERA_DEFAULT_MODEL.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cpu/isa.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

const nlohmann::json& golden() {
  static const nlohmann::json data = [] {
    std::ifstream file(TESSERA_TEST_DATA "/data/golden/smollm2.json");
    return nlohmann::json::parse(file);
  }();
  return data;
}

using Ids = std::vector<uint32_t>;

/// A device and the highest tier on it: "cpu:avx2" is the name of a test.
struct Target {
  std::string device, isa;
};
void PrintTo(const Target& target, std::ostream* out) {
  *out << target.device << " " << target.isa;
}

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const cpu::Tier tier : cpu::available_tiers()) {
    all.push_back({"cpu", std::string(name(tier))});
  }
  all.push_back({"mock", ""});
  const std::vector<DeviceInfo> found = devices();
  if (std::any_of(found.begin(), found.end(),
                  [](const DeviceInfo& device) { return device.spec.starts_with("webgpu"); })) {
    all.push_back({"webgpu", ""});
  }
  return all;
}

class Golden : public ::testing::TestWithParam<Target> {
 protected:
  static Model load(const Target& target, ActivationMode activations) {
    const char* file = std::getenv("TESSERA_DEFAULT_MODEL");
    return Model::load(file, {.device = target.device,
                              .isa = target.isa,
                              .activations = activations,
                              .kv_type = KvType::kF32});
  }
  void SetUp() override {
    if (std::getenv("TESSERA_DEFAULT_MODEL") == nullptr) {
      GTEST_SKIP() << "TESSERA_DEFAULT_MODEL does not name the default model's file";
    }
  }
  /// Tokens of the text that this target is given: all 2003 on the best tier, a part on the others,
  /// to keep the test short.
  static size_t text_tokens() {
    if (GetParam().device == "cpu" && GetParam().isa == name(cpu::available_tiers()[0]))
      return 2003;
    if (GetParam().device == "webgpu") return 65;  // a driver in software may take a second each
    return GetParam().isa == "portable" ? 301 : 601;
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, Golden, ::testing::ValuesIn(targets()), [](const auto& test) {
  return test.param.device + (test.param.isa.empty() ? "" : "_" + test.param.isa);
});

void expect_logits(Session& session, const nlohmann::json& prompt, const std::string& name) {
  const std::vector<float> logits = session.logits(prompt["ids"].get<Ids>());
  const auto ids = prompt["top10_ids"].get<Ids>();
  const auto expected = prompt["top10_logits"].get<std::vector<double>>();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_NEAR(logits[ids[i]], expected[i], 5e-4) << name << ", id " << ids[i];
  }
  if (!prompt.contains("logsumexp")) return;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - expected[0]);
  EXPECT_NEAR(expected[0] + std::log(sum), prompt["logsumexp"].get<double>(), 5e-4) << name;
}

TEST_P(Golden, IdsAndLogitsOfEveryPrompt) {
  const Model model = load(GetParam(), ActivationMode::kF32);
  Session session(model);
  int n_prompts = 0;
  for (const nlohmann::json& prompt : golden()["prompts"]) {
    const std::string name = prompt["name"];
    EXPECT_EQ(model.tokenize(prompt["text"].get<std::string>(), {.parse_special = true}),
              prompt["ids"].get<Ids>())
        << name;
    if (!prompt.contains("top10_ids")) continue;  // the empty one
    expect_logits(session, prompt, name);
    ++n_prompts;
  }
  EXPECT_GE(n_prompts, 10);
  expect_logits(session, golden()["bos_only"], "bos_only");
}

/// Greedy text, as far as no other correct implementation could differ: up to the first near-tie.
TEST_P(Golden, GreedyContinuations) {
  const Model model = load(GetParam(), ActivationMode::kF32);
  int64_t n_compared = 0;
  for (const nlohmann::json& item : golden()["greedy"]) {
    Ids expected = item["gen_ids"];
    const auto margins = item["margins"].get<std::vector<double>>();
    size_t n = 0;
    while (n < margins.size() && margins[n] >= 0.05) ++n;
    const Generation generation = Session(model).generate(
        item["prompt_ids"].get<Ids>(), {.max_tokens = static_cast<int64_t>(expected.size()),
                                        .temperature = 0,
                                        .ignore_eos = true});
    ASSERT_EQ(generation.ids.size(), expected.size());
    const auto count = static_cast<long>(n);
    EXPECT_EQ(Ids(generation.ids.begin(), generation.ids.begin() + count),
              Ids(expected.begin(), expected.begin() + count))
        << item["name"];
    if (n < expected.size()) {
      std::printf("%s: near-tie (margin %.4f) at token %zu, not compared from there on; %s\n",
                  item["name"].get<std::string>().c_str(), margins[n], n,
                  generation.ids == expected ? "all equal" : "differs behind it");
    }
    n_compared += count;
  }
  EXPECT_EQ(n_compared, 48 + 5 + 13);
}

template <typename T>
double mean(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double mean_nll(const std::vector<float>& likelihoods) {
  return -mean(likelihoods);
}

TEST_P(Golden, LikelihoodOfAText) {
  const Model model = load(GetParam(), ActivationMode::kF32);
  Ids ids = golden()["ppl"]["ids"];
  ids.resize(text_tokens());
  auto expected = golden()["ppl"]["nll"].get<std::vector<double>>();
  expected.resize(ids.size() - 1);
  const std::vector<float> likelihoods = Session(model).log_likelihoods(ids);
  ASSERT_EQ(likelihoods.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(-likelihoods[i], expected[i], 1e-3) << i;
  EXPECT_NEAR(mean_nll(likelihoods), mean(expected), 2e-4);
  if (ids.size() == 2003) {
    EXPECT_NEAR(mean_nll(likelihoods), golden()["ppl"]["mean_nll"].get<double>(), 2e-4);
  }
}

/// Quantised activations move logits by up to 1.7 here, so they are judged by what they do to a
/// text's likelihood and to clear decisions.
TEST_P(Golden, QuantisedActivations) {
  if (GetParam().device == "webgpu") GTEST_SKIP() << "activations are f32 there";
  const Model model = load(GetParam(), ActivationMode::kQ8);
  ASSERT_EQ(model.info().activations, "q8");
  Ids ids = golden()["ppl"]["ids"];
  ids.resize(text_tokens());
  auto expected = golden()["ppl"]["nll"].get<std::vector<double>>();
  expected.resize(ids.size() - 1);
  EXPECT_NEAR(mean_nll(Session(model).log_likelihoods(ids)), mean(expected), 0.02);

  for (const nlohmann::json& item : golden()["greedy"]) {
    Ids all = item["prompt_ids"];
    const size_t n_prompt = all.size();
    const Ids generated = item["gen_ids"];
    all.insert(all.end(), generated.begin(), generated.end());
    all.pop_back();
    const std::vector<float> logits = Session(model).logits(all, true);
    const auto vocab_size = static_cast<size_t>(model.info().vocab_size);
    for (size_t i = 0; i < generated.size(); ++i) {
      if (item["margins"][i].get<double>() <= 0.5) continue;
      const auto row = logits.begin() + static_cast<long>((n_prompt - 1 + i) * vocab_size);
      const auto best = std::max_element(row, row + static_cast<long>(vocab_size)) - row;
      EXPECT_EQ(static_cast<uint32_t>(best), generated[i]) << item["name"] << ", token " << i;
    }
  }
}

}  // namespace
}  // namespace tessera
