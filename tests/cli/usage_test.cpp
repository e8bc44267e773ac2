#include <gtest/gtest.h>

#include "program.hpp"

namespace tessera::test {
namespace {

struct UsageCase {
  std::vector<std::string> arguments;
  std::vector<std::string> expected;  ///< parts of the message
};

class UsageError : public testing::TestWithParam<UsageCase> {};

TEST_P(UsageError, ExitsWith2AndOneLineThatNamesTheFlag) {
  const Outcome outcome = run_tessera(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("tessera: ")) << outcome.err;
  for (const std::string& part : GetParam().expected) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cli, UsageError,
    testing::Values(
        UsageCase{{}, {"command"}}, UsageCase{{"walk"}, {"walk"}},
        UsageCase{{"run"}, {"MODEL", "run --help"}},
        UsageCase{{"run", "m", "p", "--no-such-flag"}, {"--no-such-flag"}},
        UsageCase{{"run", "m", "p", "q"}, {"q"}},
        UsageCase{{"run", "m", "p", "-n", "-1"}, {"--max-tokens", "0 to 2147483647", "-1"}},
        UsageCase{{"run", "m", "p", "-n", "ten"}, {"--max-tokens", "ten"}},
        UsageCase{{"run", "m", "p", "-n", "5", "-n", "6"}, {"--max-tokens"}},
        UsageCase{{"run", "m", "p", "--temperature", "-0.1"}, {"--temperature", "0 to 100"}},
        UsageCase{{"run", "m", "p", "--temperature", "nan"}, {"--temperature", "0 to 100"}},
        UsageCase{{"run", "m", "p", "--top-k", "-1"}, {"--top-k", "0 to"}},
        UsageCase{{"run", "m", "p", "--top-p", "0"}, {"--top-p", "above 0, at most 1"}},
        UsageCase{{"run", "m", "p", "--top-p", "1.01"}, {"--top-p", "above 0, at most 1"}},
        UsageCase{{"run", "m", "p", "--min-p", "2"}, {"--min-p", "0 to 1"}},
        UsageCase{{"run", "m", "p", "--seed", "-1"}, {"--seed", "0 to 18446744073709551615"}},
        UsageCase{{"run", "m", "p", "--threads", "1025"}, {"--threads", "0 to 1024"}},
        UsageCase{{"run", "m", "p", "--ctx", "99999999999"}, {"--ctx", "0 to"}},
        UsageCase{{"run", "m", "p", "--kv-type", "q4"}, {"--kv-type", "f16", "f32"}},
        UsageCase{{"run", "m", "p", "--activations", "f64"}, {"--activations", "auto"}},
        UsageCase{{"run", "m", "p", "--force", "matmul"}, {"--force", "op=row"}},
        UsageCase{{"run", "m", "p", "--stop", ""}, {"--stop"}},
        UsageCase{{"run", "m", "p", "-f", "x"}, {"--file", "PROMPT"}},
        UsageCase{{"logits", "m", "text", "--ids", "1"}, {"--ids", "TEXT"}},
        UsageCase{{"logits", "m", "--ids", "1", "--special"}, {"--special"}},
        UsageCase{{"logits", "m", "--ids", "1,-2"}, {"--ids"}},
        UsageCase{{"logits", "m", "t", "--top", "0"}, {"--top", "1 to"}},
        UsageCase{{"detokenize", "m"}, {"ID"}},
        UsageCase{{"detokenize", "m", "4294967296"}, {"ID", "4294967295"}},
        UsageCase{{"perplexity", "m"}, {"--file"}}, UsageCase{{"info"}, {"FILE"}},
        UsageCase{{"bench"}, {"subcommand"}},
        UsageCase{{"bench", "ops", "--op", "none"}, {"--op", "matmul"}},
        UsageCase{{"bench", "ops", "--row", "none"}, {"--row", "none"}},
        UsageCase{{"bench", "ops", "--op", "matmul", "--shape", "3x"}, {"--shape", "MxNxK"}},
        UsageCase{{"bench", "ops", "--iters", "0"}, {"--iters", "1 to"}},
        UsageCase{{"bench", "ops", "--device", "abacus"}, {"abacus", "cpu"}},
        UsageCase{{"bench", "ops", "--isa", "mmx"}, {"mmx", "avx2"}},
        UsageCase{{"bench", "model", "m", "-o", "xml"}, {"--output", "md"}},
        UsageCase{{"bench", "model", "m", "-c", "8"}, {"--ctx", "514"}},
        UsageCase{{"bench", "ops", "--compare", "eigen"}, {"--compare", "openblas", "eigen"}},
        UsageCase{{"bench", "matvec", "--rows", "5"}, {"--cols"}},
        UsageCase{{"bench", "prefill", "--tokens", "1"}, {"--tokens", "2 to"}},
        UsageCase{{"bench", "gemm-ladder", "--size", "100"}, {"--size", "multiple of 64"}},
        UsageCase{{"roofline", "--rounds", "0"}, {"--rounds", "1 to"}},
        UsageCase{{"roofline", "--largest", "4096"}, {"--largest", "1 to 512"}},
        UsageCase{{"diff-trace", "a"}, {"B"}},
        UsageCase{{"doctor", "--list-devices"}, {"--list"}}));

struct FileCase {
  std::vector<std::string> arguments;
  std::string expected;
};

class MissingFile : public testing::TestWithParam<FileCase> {};

TEST_P(MissingFile, ExitsWith3AndSaysWhatToDo) {
  const Outcome outcome =
      run_with({.arguments = GetParam().arguments,
                .environment = {{"TESSERA_DEFAULT_MODEL", "/nonexistent/model.gguf"}}});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().expected), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, MissingFile,
    testing::Values(FileCase{{"run", "default", "p"}, "fetch_default_model.py"},
                    FileCase{{"run", "/nonexistent.gguf", "p"}, "no such file"},
                    FileCase{{"run", TESSERA_TEST_DATA, "p"}, "folder"},
                    FileCase{{"run", "org/name", "p"}, "later version"},
                    FileCase{{"run", "m.gguf", "-f", "/nonexistent.txt"}, "/nonexistent.txt"},
                    FileCase{{"info", "/nonexistent.gguf"}, "no such file"},
                    FileCase{{"diff-trace", "/nonexistent", "/nonexistent"}, "/nonexistent"}));

TEST(Cli, HelpAndVersionGoToStandardOutput) {
  const Outcome version = run_tessera({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("tessera 0.")) << version.out;
  const Outcome help = run_tessera({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command : {"run", "tokenize", "detokenize", "logits", "perplexity", "info",
                              "bench", "roofline", "diff-trace", "doctor"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  }
}

TEST(Cli, EveryCommandHasExamples) {
  const std::vector<std::vector<std::string>> commands = {{"run"},
                                                          {"tokenize"},
                                                          {"detokenize"},
                                                          {"logits"},
                                                          {"perplexity"},
                                                          {"info"},
                                                          {"bench", "ops"},
                                                          {"bench", "model"},
                                                          {"bench", "matvec"},
                                                          {"bench", "prefill"},
                                                          {"bench", "gemm-ladder"},
                                                          {"roofline"},
                                                          {"diff-trace"},
                                                          {"doctor"}};
  for (std::vector<std::string> command : commands) {
    const std::string name = command.back();
    command.push_back("--help");
    const Outcome outcome = run_tessera(command);
    EXPECT_EQ(outcome.exit_code, 0) << name;
    EXPECT_NE(outcome.out.find("Examples:\n  tessera "), std::string::npos) << name;
  }
}

TEST(Cli, CommittedReferenceIsCurrent) {
  const Outcome outcome = run_tessera({"--markdown-help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, read_file(TESSERA_CLI_DOCS))
      << "docs/cli.md is stale: tessera --markdown-help > docs/cli.md";
}

TEST(Cli, DevicesAndDoctorNameTheCpu) {
  const Outcome list = run_tessera({"--list-devices"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_TRUE(list.out.starts_with("cpu")) << list.out;
  EXPECT_EQ(list.out.find(" 0 B"), std::string::npos) << list.out;
  const nlohmann::json doctor = run_tessera({"doctor", "--json"}).json();
  for (const char* key : {"version", "compiler", "system", "cpus", "allowed_cpus", "memory_bytes",
                          "available_bytes", "devices", "missing_devices", "default_model"}) {
    EXPECT_TRUE(doctor.contains(key)) << key;
  }
  EXPECT_EQ(doctor["devices"][0]["spec"], "cpu");
  EXPECT_EQ(doctor["devices"][0]["features"].back(), "portable");
  EXPECT_GE(doctor["allowed_cpus"].get<int>(), 1);
  EXPECT_GT(doctor["memory_bytes"].get<int64_t>(), 0);
}

TEST(Cli, FullDiskIsAnError) {
  const Outcome outcome = run_with({.arguments = {"doctor"}, .output_path = "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST(Cli, NoEscapeSequencesOffTheTerminal) {
  const Outcome outcome = run_tessera({"run"});
  EXPECT_EQ(outcome.err.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace tessera::test
