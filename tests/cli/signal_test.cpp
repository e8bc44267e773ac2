#include <gtest/gtest.h>

#include <csignal>

#include "program.hpp"
#include "support/tiny_model.hpp"

namespace tessera::test {
namespace {

/// A model with a context long enough to be interrupted.
class CliSignal : public testing::Test {
 protected:
  void SetUp() override {
    model_ = (folder_ / "tiny.gguf").string();
    TinyModelOptions options;
    options.d_model = 256;
    options.n_layers = 8;
    options.d_ff = 512;
    options.context = 65536;
    write_tiny_model(model_, options);
  }
  Invocation long_run() const {
    return {.arguments = {"run", model_, "hello", "-n", "60000", "-c", "65536", "--ignore-eos"}};
  }
  TempFolder folder_;
  std::string model_;
};

TEST_F(CliSignal, CtrlCKeepsTheTextAndExitsWith130) {
  Process process(long_run());
  process.wait_for_output();
  kill(process.pid(), SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_FALSE(outcome.out.empty());
  EXPECT_NE(outcome.err.find("cancelled"), std::string::npos) << outcome.err;
}

TEST_F(CliSignal, CtrlCStillGivesOneJsonObject) {
  Invocation run = long_run();
  run.arguments.push_back("--json");
  Process process(run);
  timespec pause = {.tv_sec = 0, .tv_nsec = 500'000'000};
  nanosleep(&pause, nullptr);
  kill(process.pid(), SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.json()["finish_reason"], "cancelled");
}

TEST_F(CliSignal, ShrunkenFileIsAnInvalidFile) {
  Process process(long_run());
  process.wait_for_output();
  std::filesystem::resize_file(model_, 4096);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 3) << outcome.signal;
  EXPECT_EQ(outcome.n_error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("shorter"), std::string::npos) << outcome.err;
}

TEST_F(CliSignal, ClosedPipeEndsTheProgramQuietly) {
  Process process(long_run());
  process.wait_for_output();
  process.close_output();
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.signal, SIGPIPE);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace tessera::test
