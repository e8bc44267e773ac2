// The suite itself: rows that are wrong in one way each must be caught, and for that reason.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/team.hpp"
#include "conformance.hpp"
#include "cpu/device.hpp"
#include "cpu/queue.hpp"
#include "ops/elementwise/silu.hpp"
#include "support_table.hpp"

namespace tessera::conformance {
namespace {

using Args = Silu::Args;
/// What one thread does, told how many there are.
using Kernel = void (*)(const Args&, int n_threads);

int64_t n_live_rows(const Args& args) {
  return args.live.defined() ? *host_data<uint32_t>(args.live) : args.x.dim(0);
}
float* row_of(const Tensor& tensor, int64_t i) {
  return reinterpret_cast<float*>(host_data<std::byte>(tensor) + i * tensor.stride_bytes[0]);
}
float silu_of(float x) {
  const auto wide = static_cast<double>(x);
  return static_cast<float>(wide / (1 + std::exp(-wide)));
}
void run_rows(const Args& args, int64_t begin, int64_t end, int64_t n_columns) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < n_columns; ++c) row_of(args.y, i)[c] = silu_of(row_of(args.x, i)[c]);
  }
}

void right(const Args& args, int) {
  run_rows(args, 0, n_live_rows(args), args.x.dim(1));
}
void one_element_wrong(const Args& args, int) {
  right(args, 1);
  if (n_live_rows(args) == 3 && args.x.dim(1) == 65) {
    row_of(args.y, 2)[64] *= 1.00001f;
  }
}
void tail_ignored(const Args& args, int) {
  run_rows(args, 0, n_live_rows(args), args.x.dim(1) / 4 * 4);
}
void live_ignored(const Args& args, int) {
  run_rows(args, 0, args.x.dim(0), args.x.dim(1));
}
void byte_behind_the_end(const Args& args, int) {
  right(args, 1);
  if (args.y.shape.count() == 0) return;
  (host_data<std::byte>(args.y) + args.y.span_bytes())[0] = std::byte{1};
}
void byte_before_the_start(const Args& args, int) {
  right(args, 1);
  host_data<std::byte>(args.y)[-1] = std::byte{1};
}
void padding_written(const Args& args, int) {
  right(args, 1);
  if (args.y.is_dense() || n_live_rows(args) < 2) return;
  row_of(args.y, 0)[args.y.dim(1)] = 0;
}
void input_changed(const Args& args, int) {
  right(args, 1);
  if (n_live_rows(args) > 0) row_of(args.x, 0)[0] += 1;
}
void depends_on_threads(const Args& args, int n_threads) {
  right(args, 1);
  if (n_threads == 1 || n_live_rows(args) == 0) return;
  float& value = row_of(args.y, 0)[0];
  value = std::nextafter(value, 0.0f);
}
void differs_from_run_to_run(const Args& args, int) {
  static bool odd = false;
  right(args, 1);
  if (n_live_rows(args) == 0) return;
  float& value = row_of(args.y, 0)[0];
  if (odd) value = std::nextafter(value, 0.0f);
  odd = !odd;
}
void last_bit_lower(const Args& args, int) {
  right(args, 1);
  if (n_live_rows(args) == 0) return;
  float& value = row_of(args.y, 0)[0];
  value = std::nextafter(value, 0.0f);
}

struct Call {
  Kernel kernel;
  Args args;
};
void record(Queue& queue, const Call& call) {
  cpu::cpu_queue(queue).record<Call>(
      Silu::kName,
      [](const Call& recorded, Team& team) noexcept {
        for (int64_t c; (c = team.next_chunk(1)) < 1;) recorded.kernel(recorded.args, team.size());
      },
      call);
}

Row<Silu> row_with(Kernel kernel, std::string name = "under_test") {
  return {.name = std::move(name),
          .supports = [](const Args&, const Caps&) { return true; },
          .run =
              [kernel](Queue& queue, const Args& args, const Tensor&) {
                record(queue, {kernel, args});
              },
          .traits = {.isa = "portable"}};
}

Report check(const std::vector<Row<Silu>>& rows,
             cpu::CpuDevice::Memory memory = cpu::CpuDevice::Memory::kProtected) {
  const DeviceKind kind =
      cpu::device_kind(memory, [&](KernelTable& table, const std::vector<cpu::Tier>&) {
        for (const Row<Silu>& row : rows) table.add<Silu>(row);
      });
  Harness harness = make_harness(kind, 0, {.n_threads = 2, .isa = ""});
  Report report;
  Options options;
  options.quick = true;
  check_op<Silu>(harness, options, cases<Silu>(), report);
  return report;
}

void expect_caught(const Report& report, const std::string& reason) {
  ASSERT_GT(report.n_failed, 0) << "nothing was reported, expected: " << reason;
  ASSERT_EQ(report.failures.size(), static_cast<size_t>(report.n_failed));
  EXPECT_NE(report.failures.front().find(reason), std::string::npos) << report.failures.front();
}

TEST(Suite, ARightRowPasses) {
  for (const auto memory : {cpu::CpuDevice::Memory::kShared, cpu::CpuDevice::Memory::kProtected}) {
    const Report report = check({row_with(right)}, memory);
    EXPECT_EQ(report.n_failed, 0) << report.failures.front();
    EXPECT_GT(report.n_passed, 20);
    EXPECT_EQ(report.n_skipped, 0);
  }
}

TEST(Suite, OneWrongElementIsFoundWithItsPlace) {
  const Report report = check({row_with(one_element_wrong)});
  expect_caught(report, "silu / under_test / 3x65: y[2, 64]: got");
  EXPECT_NE(report.failures.front().find("(1 elements wrong)"), std::string::npos);
}

TEST(Suite, AnIgnoredTailIsFound) {
  expect_caught(check({row_with(tail_ignored)}), "not written");
}

TEST(Suite, RowsBehindLiveMayNotBeWritten) {
  expect_caught(check({row_with(live_ignored)}), "was written but may not be");
}

TEST(Suite, GuardBandsAndPaddingAreWatched) {
  for (const Kernel kernel : {byte_behind_the_end, byte_before_the_start, padding_written}) {
    expect_caught(check({row_with(kernel)}), "padding or guard band");
  }
}

TEST(Suite, InputsMayNotChange) {
  expect_caught(check({row_with(input_changed)}), "an input or its guard band");
}

TEST(Suite, ThreadsMayNotMatter) {
  expect_caught(check({row_with(depends_on_threads)}), "another number of threads: y[0, 0]");
}

TEST(Suite, RunsMayNotDiffer) {
  expect_caught(check({row_with(differs_from_run_to_run)}), "second run of the same step: y[0, 0]");
}

TEST(Suite, APromiseOfEqualBitsIsHeld) {
  Row<Silu> first = row_with(right, "first"), second = row_with(last_bit_lower, "second");
  EXPECT_EQ(check({first, second}).n_failed, 0);
  first.traits.reduction_order = second.traits.reduction_order = "by_rows";
  expect_caught(check({first, second}), "promises the bits of first: y[0, 0]");
}

TEST(Suite, ScratchThatIsReadBeforeItIsWrittenIsFound) {
  Row<Silu> row = row_with(right);
  row.scratch_bytes = [](const Args&) { return int64_t{64}; };
  row.run = [](Queue& queue, const Args& args, const Tensor& scratch) {
    struct Packed {
      Args args;
      Tensor scratch;
    };
    cpu::cpu_queue(queue).record<Packed>(
        Silu::kName,
        [](const Packed& packed, Team& team) noexcept {
          for (int64_t c; (c = team.next_chunk(1)) < 1;) {
            right(packed.args, 1);
            if (n_live_rows(packed.args) == 0) continue;
            row_of(packed.args.y, 0)[0] += *host_data<float>(packed.scratch);
          }
        },
        Packed{args, scratch});
  };
  expect_caught(check({row}), "y[0, 0] was not written, or is NaN from poisoned memory");
}

TEST(Suite, ARowThatSupportsNothingFails) {
  Row<Silu> never = row_with(right, "never");
  never.supports = [](const Args&, const Caps&) { return false; };
  const Report report = check({row_with(right), never});
  EXPECT_EQ(report.n_failed, 1);
  expect_caught(report, "never: row never ran");
}

TEST(Suite, CasesWithoutAKernelAreSkippedNotPassed) {
  Row<Silu> narrow = row_with(right);
  narrow.supports = [](const Args& args, const Caps&) { return args.x.dim(1) <= 8; };
  const Report report = check({narrow});
  EXPECT_EQ(report.n_failed, 0);
  EXPECT_GT(report.n_skipped, 10);
}

TEST(Support, TheCommittedTableIsTrue) {
#ifndef TESSERA_HAS_WEBGPU
  GTEST_SKIP() << "built without WebGPU, whose column cannot be made";
#endif
  std::ifstream file(std::string(TESSERA_TEST_DATA) + "/../docs/support.md");
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), support_table())
      << "run `ops_test --support > docs/support.md` and read what changed";
}

}  // namespace
}  // namespace tessera::conformance
