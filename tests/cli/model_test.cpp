#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "program.hpp"
#include "support/tiny_model.hpp"

namespace tessera::test {
namespace {

/// Commands on a tiny random model; its tokens are known (tiny_vocabulary).
class CliModel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    model_ = (*folder_ / "tiny.gguf").string();
    TinyModelOptions options;
    options.dtype = DType::kQ4_1;
    write_tiny_model(model_, options);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static uint32_t id_of(const std::string& token) {
    const std::vector<std::string> tokens = tiny_vocabulary().tokens;
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    EXPECT_NE(found, tokens.end()) << token;
    return static_cast<uint32_t>(found - tokens.begin());
  }
  static std::vector<std::string> greedy(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", model_, "--temperature", "0", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static std::unique_ptr<TempFolder> folder_;
  static std::string model_;
};
std::unique_ptr<TempFolder> CliModel::folder_;
std::string CliModel::model_;

TEST_F(CliModel, RunPrintsOneJsonObjectWithEveryField) {
  const Outcome outcome = run_tessera(greedy({"hello", "-n", "5", "--json", "-q"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const nlohmann::json result = outcome.json();
  EXPECT_EQ(result["prompt"], "hello");
  EXPECT_EQ(result["prompt_ids"], (std::vector<uint32_t>{id_of("hello")}));
  EXPECT_EQ(result["ids"].size(), 5U);
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_EQ(result["device"], "cpu");
  EXPECT_TRUE(result["text"].is_string());
  EXPECT_EQ(result["timings"]["prefill_tokens"], 1);
  EXPECT_EQ(result["timings"]["decode_tokens"], 4);  // the first comes out of the prompt's step
  for (const char* key : {"load_ms", "prefill_ms", "prefill_tps", "decode_ms", "decode_tps"}) {
    EXPECT_GT(result["timings"][key].get<double>(), 0) << key;
  }
}

TEST_F(CliModel, StreamedTextEqualsJsonTextAndTheRestGoesToStandardError) {
  const nlohmann::json result = run_tessera(greedy({"hello", "-n", "20", "--json"})).json();
  const Outcome streamed = run_tessera(greedy({"hello", "-n", "20"}));
  EXPECT_EQ(streamed.exit_code, 0);
  std::string text = result["text"];
  if (!text.ends_with('\n')) text += '\n';
  EXPECT_EQ(streamed.out, text);
  EXPECT_NE(streamed.err.find("tok/s"), std::string::npos) << streamed.err;
  EXPECT_NE(streamed.err.find("greedy"), std::string::npos) << streamed.err;
}

TEST_F(CliModel, PromptComesFromArgumentFileOrStandardInput) {
  const auto prompt = *folder_ / "prompt.txt";
  write_file(prompt, "hello and\n");
  const auto ids = [](const Outcome& outcome) { return outcome.json()["ids"]; };
  const auto expected = ids(run_tessera(greedy({"hello and\n", "-n", "8", "--json"})));
  EXPECT_EQ(ids(run_tessera(greedy({"-f", prompt.string(), "-n", "8", "--json"}))), expected);
  for (const bool dash : {false, true}) {
    std::vector<std::string> arguments = greedy({"-n", "8", "--json"});
    if (dash) arguments.push_back("-");
    EXPECT_EQ(ids(run_with({.arguments = arguments, .input = "hello and\n"})), expected);
  }
}

TEST_F(CliModel, EmptyPromptIsAUsageError) {
  const Outcome outcome = run_tessera(greedy({"-n", "1"}));  // standard input is empty
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
}

TEST_F(CliModel, EnvironmentSetsFlagsAndFlagsWin) {
  const Invocation run = {.arguments = greedy({"hello", "--json"}),
                          .environment = {{"TESSERA_MAX_TOKENS", "3"}}};
  EXPECT_EQ(run_with(run).json()["ids"].size(), 3U);
  Invocation overridden = run;
  overridden.arguments.insert(overridden.arguments.end(), {"-n", "6"});
  EXPECT_EQ(run_with(overridden).json()["ids"].size(), 6U);
  Invocation wrong = run;
  wrong.environment = {{"TESSERA_MAX_TOKENS", "many"}};
  const Outcome outcome = run_with(wrong);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--max-tokens"), std::string::npos) << outcome.err;
  // Variables of other commands do not matter.
  Invocation other = run;
  other.environment = {{"TESSERA_OUTPUT", "xml"}};
  EXPECT_EQ(run_with(other).exit_code, 0);
}

TEST_F(CliModel, DefaultIsTheFileThatTheVariableNames) {
  const Outcome outcome = run_with({.arguments = {"tokenize", "default", "hello", "--json"},
                                    .environment = {{"TESSERA_DEFAULT_MODEL", model_}}});
  EXPECT_EQ(outcome.json()["ids"], (std::vector<uint32_t>{id_of("hello")}));
  TempFolder cache;
  std::filesystem::create_directories(cache / "tessera" / "models");
  std::filesystem::copy_file(model_,
                             cache / "tessera" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf");
  const Outcome cached = run_with({.arguments = {"tokenize", "default", "hello", "--json"},
                                   .environment = {{"XDG_CACHE_HOME", (cache / "").string()}}});
  EXPECT_EQ(cached.out, outcome.out);
}

TEST_F(CliModel, SeedRepeatsARun) {
  const auto ids = [](const std::string& seed) {
    return run_tessera({"run", model_, "hello", "-n", "24", "--ignore-eos", "--temperature", "1.5",
                        "--top-k", "0", "--top-p", "1", "--seed", seed, "--json"})
        .json()["ids"];
  };
  EXPECT_EQ(ids("18446744073709551615"), ids("18446744073709551615"));
  EXPECT_NE(ids("1"), ids("2"));
}

TEST_F(CliModel, StopEndsBeforeTheText) {
  const std::string text = run_tessera(greedy({"hello", "-n", "20", "--json"})).json()["text"];
  const auto stop =
      std::find_if(text.begin() + 1, text.end(), [](char c) { return c > ' ' && c <= '~'; });
  ASSERT_NE(stop, text.end()) << "no plain character in the text: choose another seed";
  const auto result =
      run_tessera(greedy({"hello", "-n", "20", "--json", "--stop", std::string(1, *stop)})).json();
  EXPECT_EQ(result["finish_reason"], "stop");
  EXPECT_EQ(result["text"], text.substr(0, text.find(*stop)));
}

TEST_F(CliModel, PromptBeyondTheContextIsAUsageErrorWithBothNumbers) {
  const Outcome outcome = run_tessera(greedy({std::string(40, 'x'), "-c", "16"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("40"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("16"), std::string::npos) << outcome.err;
}

TEST_F(CliModel, FullContextEndsTheText) {
  const auto result = run_tessera(greedy({"hello", "-c", "16", "-n", "100", "--json"})).json();
  EXPECT_EQ(result["finish_reason"], "context");
}

TEST_F(CliModel, ForcedRowMustExist) {
  const Outcome outcome = run_tessera(greedy({"hello", "--force", "matmul=abacus"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("abacus"), std::string::npos) << outcome.err;
}

TEST_F(CliModel, TokenizeAndDetokenize) {
  const uint32_t hello = id_of("hello"), space_and = id_of(
                                             "\xC4\xA0"
                                             "and");
  const auto json = run_tessera({"tokenize", model_, "hello and", "--json"}).json();
  EXPECT_EQ(json["ids"], (std::vector<uint32_t>{hello, space_and}));
  EXPECT_EQ(json["pieces"], (std::vector<std::string>{"hello", " and"}));
  EXPECT_EQ(run_tessera({"tokenize", model_, "hello\n"}).out,
            "    " + std::to_string(hello) + " \"hello\"\n     " +
                std::to_string(id_of("\xC4\x8A")) + " \"\\n\"\n");
  const auto ids = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"tokenize", model_, "--json"});
    return run_tessera(flags).json()["ids"];
  };
  EXPECT_EQ(ids({"hello", "--bos"}), (std::vector<uint32_t>{1, hello}));
  EXPECT_EQ(ids({"hello", "--no-bos"}), (std::vector<uint32_t>{hello}));
  EXPECT_EQ(ids({"<|im_end|>", "--special"}), (std::vector<uint32_t>{2}));
  EXPECT_GT(ids({"<|im_end|>"}).size(), 5U);
  const Outcome text =
      run_tessera({"detokenize", model_, std::to_string(hello), std::to_string(space_and)});
  EXPECT_EQ(text.out, "hello and\n");
  EXPECT_EQ(run_tessera({"detokenize", model_, std::to_string(hello), "--json"}).json()["text"],
            "hello");
}

TEST_F(CliModel, LogitsComeBestFirstAndByPosition) {
  const auto one = run_tessera({"logits", model_, "--ids", "5,6,7", "--top", "4", "--json"}).json();
  EXPECT_EQ(one["ids"], (std::vector<uint32_t>{5, 6, 7}));
  ASSERT_EQ(one["top"].size(), 4U);
  for (size_t i = 1; i < 4; ++i) EXPECT_GE(one["top"][i - 1]["logit"], one["top"][i]["logit"]);
  const Outcome all =
      run_tessera({"logits", model_, "--ids", "5,6,7", "--top", "4", "--json", "--all-positions"});
  ASSERT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 3) << all.err;
  const auto last = nlohmann::json::parse(all.out.substr(all.out.rfind("\n{") + 1));
  EXPECT_EQ(last["position"], 2);
  EXPECT_EQ(last["id"], 7);
  EXPECT_EQ(last["top"], one["top"]);
}

/// Negative log-likelihoods of a text's tokens, from the logits that the program prints.
std::vector<double> expected_nlls(const std::string& model, const std::string& text) {
  const Outcome outcome = run_tessera({"logits", model, text, "--all-positions", "--json", "--top",
                                       "100000", "--activations", "f32", "--kv-type", "f32"});
  std::vector<nlohmann::json> lines;
  for (size_t at = 0; at < outcome.out.size();) {
    const size_t end = outcome.out.find('\n', at);
    lines.push_back(nlohmann::json::parse(outcome.out.substr(at, end - at)));
    at = end + 1;
  }
  std::vector<double> nlls;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    double sum = 0, chosen = 0;
    for (const auto& entry : lines[i]["top"]) {
      sum += std::exp(entry["logit"].get<double>());
      if (entry["id"] == lines[i + 1]["id"]) chosen = entry["logit"];
    }
    nlls.push_back(std::log(sum) - chosen);
  }
  return nlls;
}

TEST_F(CliModel, PerplexityIsThatOfTheLogits) {
  const std::string text = "the red hen and the hello";
  const auto file = *folder_ / "text.txt";
  write_file(file, text);
  const std::vector<double> nlls = expected_nlls(model_, text);
  const double nll =
      std::accumulate(nlls.begin(), nlls.end(), 0.0) / static_cast<double>(nlls.size());
  const auto result = run_tessera({"perplexity", model_, "-f", file.string(), "--activations",
                                   "f32", "--kv-type", "f32", "--json"})
                          .json();
  EXPECT_EQ(result["tokens"], nlls.size());
  EXPECT_NEAR(result["nll"].get<double>(), nll, 1e-4);
  EXPECT_NEAR(result["ppl"].get<double>(), std::exp(nll), 1e-2);
}

TEST_F(CliModel, PerplexityInWindowsScoresEveryTokenOnce) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += static_cast<char>('A' + i % 26);  // no merges: 30 tokens
  const auto file = *folder_ / "long.txt";
  write_file(file, text);
  // Windows of 16: tokens 0..15, then 8..23 for 16..23, then 16..29 for 24..29.
  double nll = 0;
  for (const auto& [begin, end, first] : {std::tuple{0, 16, 0}, {8, 24, 7}, {16, 30, 7}}) {
    const auto nlls = expected_nlls(
        model_, text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    nll = std::accumulate(nlls.begin() + first, nlls.end(), nll);
  }
  const auto result = run_tessera({"perplexity", model_, "-f", file.string(), "--activations",
                                   "f32", "--kv-type", "f32", "-c", "16", "--json"})
                          .json();
  EXPECT_EQ(result["tokens"], 29);
  EXPECT_NEAR(result["nll"].get<double>(), nll / 29, 1e-4);
  const Outcome gap =
      run_tessera({"perplexity", model_, "-f", file.string(), "-c", "16", "--stride", "16"});
  EXPECT_EQ(gap.exit_code, 2);
  EXPECT_NE(gap.err.find("1..15"), std::string::npos) << gap.err;
}

TEST_F(CliModel, InfoShowsEveryField) {
  const auto info = run_tessera({"info", model_, "--ctx", "64", "--json"}).json();
  EXPECT_EQ(info["size_bytes"], std::filesystem::file_size(model_));
  EXPECT_EQ(info["gguf_version"], 3);
  EXPECT_EQ(info["runs"], true);
  EXPECT_EQ(info["metadata"]["general.architecture"]["value"], "llama");
  EXPECT_EQ(info["metadata"]["tokenizer.ggml.tokens"]["size"], tiny_vocabulary().tokens.size());
  EXPECT_EQ(info["metadata"]["tokenizer.ggml.tokens"]["first"].size(), 16U);
  // Two layers of nine tensors, the embedding and the last norm.
  EXPECT_EQ(info["tensors"].size(), 20U);
  EXPECT_EQ(info["memory"]["context"], 64);
  // 2 layers x 2 (K, V) x 64 tokens x 2 heads x 16 values x 2 bytes, at least.
  EXPECT_GE(info["memory"]["kv_bytes"].get<int64_t>(), 2 * 2 * 64 * 2 * 16 * 2);
  EXPECT_EQ(info["memory"]["total_bytes"].get<int64_t>(),
            info["memory"]["weight_bytes"].get<int64_t>() +
                info["memory"]["kv_bytes"].get<int64_t>() +
                info["memory"]["activation_bytes"].get<int64_t>());
  const Outcome text = run_tessera({"info", model_});
  EXPECT_EQ(text.exit_code, 0);
  for (const char* part : {"runs        yes", "Q4_1", "general.architecture", "memory"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
}

TEST_F(CliModel, InfoListsTypesThatCannotRun) {
  const std::string file = std::string(TESSERA_TEST_DATA) + "/hostile/model/type_f64.gguf";
  const Outcome outcome = run_tessera({"info", file});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.out.find("runs        no: "), std::string::npos);
  EXPECT_NE(outcome.out.find("tessera cannot compute with it"), std::string::npos);
  EXPECT_EQ(run_tessera({"info", file, "--json"}).json()["runs"], false);
}

TEST_F(CliModel, DiffTraceNamesTheFirstDifference) {
  const std::string a = (*folder_ / "a.jsonl").string(), b = (*folder_ / "b.jsonl").string();
  for (const std::string& path : {a, b}) {
    ASSERT_EQ(run_tessera(greedy({"hello", "-n", "2", "--trace-tensors", path})).exit_code, 0);
  }
  const Outcome equal = run_tessera({"diff-trace", a, b});
  EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;

  // Another hash in the fifth line.
  std::string text = read_file(b);
  size_t line = 0;
  for (int i = 0; i < 4; ++i) line = text.find('\n', line) + 1;
  const auto entry = nlohmann::json::parse(text.substr(line, text.find('\n', line) - line));
  const std::string hash = entry["hash"];
  text.replace(text.find(hash, line), hash.size(), "feedfacefeedface");
  write_file(b, text);
  const Outcome different = run_tessera({"diff-trace", a, b});
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_NE(different.out.find(entry["op"].get<std::string>()), std::string::npos);
  EXPECT_NE(different.out.find("feedfacefeedface"), std::string::npos) << different.out;
  const Outcome json = run_tessera({"diff-trace", a, b, "--json"});
  EXPECT_EQ(json.json()["a"]["hash"], hash);

  write_file(b, read_file(a).substr(0, read_file(a).rfind("\n{") + 1));
  EXPECT_EQ(run_tessera({"diff-trace", a, b}).exit_code, 1);
  write_file(b, "no trace\n");
  EXPECT_EQ(run_tessera({"diff-trace", a, b}).exit_code, 3);
}

TEST(CliDefaultModel, ContinuesAsTheGoldenDoes) {
  const char* model = std::getenv("TESSERA_DEFAULT_MODEL");
  if (model == nullptr) GTEST_SKIP() << "TESSERA_DEFAULT_MODEL is not set: default model untested";
  // Greedy tokens of transformers in f32, checked against a numpy f64 forward pass.
  const std::vector<uint32_t> expected = {7042, 30, 198, 198, 504, 2988, 314, 42};
  const auto result = run_tessera({"run", model, "The capital of France is", "--temperature", "0",
                                   "--activations", "f32", "--kv-type", "f32", "-n", "8", "--json"})
                          .json();
  EXPECT_EQ(result["prompt_ids"], (std::vector<uint32_t>{504, 3575, 282, 4649, 314}));
  EXPECT_EQ(result["ids"], expected);
}

}  // namespace
}  // namespace tessera::test
