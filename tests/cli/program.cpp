#include "program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace tessera::test {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return ends;
}

std::vector<std::string> environment_of(const Invocation& invocation) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("TESSERA_")) result.push_back(text);
  }
  for (const auto& [name, value] : invocation.environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Standard input of the program: a file, so that nobody has to feed it.
int input_file(const std::string& input) {
  std::string path = (std::filesystem::temp_directory_path() / "tessera-stdin-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) throw std::runtime_error("mkstemp failed");
  unlink(path.c_str());
  for (size_t at = 0; at < input.size();) {
    const ssize_t n = write(file, input.data() + at, input.size() - at);
    if (n <= 0) throw std::runtime_error("writing standard input failed");
    at += static_cast<size_t>(n);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

/// Appends what is there; false at the end.
bool read_some(int file, std::string& text) {
  std::array<char, 4096> chunk = {};
  const ssize_t n = read(file, chunk.data(), chunk.size());
  if (n <= 0) return false;
  text.append(chunk.data(), static_cast<size_t>(n));
  return true;
}

}  // namespace

nlohmann::json Outcome::json() const {
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out << err;
  auto value = nlohmann::json::parse(out, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << out << err;
  return value;
}

size_t Outcome::n_error_lines() const {
  return static_cast<size_t>(std::count(err.begin(), err.end(), '\n'));
}

Process::Process(const Invocation& invocation) {
  const auto out_pipe = make_pipe();
  const auto err_pipe = make_pipe();
  const int input = input_file(invocation.input);
  std::vector<std::string> arguments = {TESSERA_PROGRAM};
  arguments.insert(arguments.end(), invocation.arguments.begin(), invocation.arguments.end());
  std::vector<std::string> variables = environment_of(invocation);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  pid_ = fork();
  if (pid_ == 0) {
    int out = out_pipe[1];
    if (!invocation.output_path.empty()) out = open(invocation.output_path.c_str(), O_WRONLY);
    dup2(input, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err_pipe[1], STDERR_FILENO);
    execve(TESSERA_PROGRAM, argv.data(), envp.data());
    _exit(127);
  }
  close(input);
  close(out_pipe[1]);
  close(err_pipe[1]);
  out_ = out_pipe[0];
  err_ = err_pipe[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Process::wait_for_output() {
  read_some(out_, seen_);
}

void Process::close_output() {
  close(out_);
  out_ = -1;
}

Outcome Process::finish() {
  Outcome outcome;
  outcome.out = seen_;
  std::array<pollfd, 2> files = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&outcome.out, &outcome.err};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    poll(files.data(), files.size(), -1);
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].fd >= 0 && files[i].revents != 0 && !read_some(files[i].fd, *texts[i])) {
        files[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

Outcome run_with(const Invocation& invocation) {
  return Process(invocation).finish();
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tessera-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace tessera::test
