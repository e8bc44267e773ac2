#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "api/devices.hpp"
#include "bench/model_bench.hpp"
#include "bench/op_bench.hpp"
#include "bench/operands.hpp"
#include "bench/probes.hpp"
#include "cpu/isa.hpp"
#include "ops/matmul/matmul.hpp"

namespace tessera::bench {
namespace {

// Limits that no computer of today is outside of; a loop that the compiler removed would be.
TEST(Probes, FiguresAreThoseOfAComputer) {
  for (const cpu::Tier tier : cpu::available_tiers()) {
    Probes probes(1, cpu::name(tier));
    EXPECT_EQ(probes.isa(), cpu::name(tier));
    double flops = 0, int8 = 0;  // the best of a few: one sample may fall into a pause
    for (int i = 0; i < 5; ++i) {
      flops = std::max(flops, probes.f32_gflops());
      int8 = std::max(int8, probes.int8_gops());
    }
    EXPECT_GT(flops, 0.1) << cpu::name(tier);
    EXPECT_LT(flops, 1000) << cpu::name(tier);
    EXPECT_GT(int8, 0.1) << cpu::name(tier);
    EXPECT_LT(int8, 8000) << cpu::name(tier);
    for (const int64_t bytes : {int64_t{1}, int64_t{32} << 10, int64_t{8} << 20}) {
      const double gbs = probes.read_gbs(bytes);
      EXPECT_GT(gbs, 0.01) << cpu::name(tier) << " " << bytes;
      EXPECT_LT(gbs, 2000) << cpu::name(tier) << " " << bytes;
    }
  }
}

TEST(Row, SpreadIsOfSortedSamples) {
  const Spread spread = spread_of({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(spread.median, 30);
  EXPECT_DOUBLE_EQ(spread.p10, 14);
  EXPECT_DOUBLE_EQ(spread.p90, 46);
  EXPECT_DOUBLE_EQ(spread_of({7}).p90, 7);
}

BenchRow example_row(double flops, double bytes) {
  BenchRow row;
  row.time_ns = {.median = 1000, .p10 = 900, .p90 = 1100};
  row.flops = flops;
  row.bytes = bytes;
  row.ceiling = {.gflops = 100, .gbs = 10, .latency_ns = 50};
  return row;
}

TEST(Row, TheBindingLimitIsTheLargerTime) {
  // 50,000 FLOPs at 100 a ns are 500 ns, 2,000 bytes at 10 a ns are 200 ns.
  const BenchRow compute = example_row(50'000, 2'000);
  EXPECT_EQ(compute.bound(), "compute");
  EXPECT_DOUBLE_EQ(compute.percent(), 50);
  EXPECT_DOUBLE_EQ(compute.intensity(), 25);
  EXPECT_DOUBLE_EQ(compute.gflops(), 50);
  const BenchRow memory = example_row(1'000, 8'000);
  EXPECT_EQ(memory.bound(), "memory");
  EXPECT_DOUBLE_EQ(memory.percent(), 80);
  EXPECT_DOUBLE_EQ(memory.gbs(), 8);
  EXPECT_EQ(example_row(10, 10).bound(), "latency");
  BenchRow unmeasured = example_row(10, 10);
  unmeasured.ceiling = {};
  EXPECT_EQ(unmeasured.bound(), "");
}

TEST(Row, JsonHasEveryColumn) {
  const auto json = to_json(example_row(50'000, 2'000));
  for (const char* key : {"op",      "shape",     "dtype",  "row",     "device",
                          "threads", "median_ns", "p10_ns", "p90_ns",  "flops",
                          "bytes",   "intensity", "gflops", "gbs",     "percent_of_measured",
                          "bound",   "error",     "cache",  "machine", "commit",
                          "date"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_TRUE(json["error"].is_null());
}

TEST(Row, OriginSaysWhereAndWhen) {
  const Origin from = origin();
  EXPECT_FALSE(from.machine.empty());
  EXPECT_FALSE(from.commit.empty());
  ASSERT_EQ(from.date.size(), 20U);  // 2000-01-01T00:00:00Z
  EXPECT_EQ(from.date[10], 'T');
  EXPECT_EQ(from.date.back(), 'Z');
}

TEST(OpBench, RelativeErrorIsThatOfTheWorstOutput) {
  EXPECT_EQ(relative_error({{1, 2}}, {{1, 2}}), 0);
  EXPECT_DOUBLE_EQ(relative_error({{1, 2}, {3, 5}}, {{1, 2}, {3, 4}}), 0.25);
  EXPECT_TRUE(std::isnan(relative_error({{std::nan(""), 2}}, {{1, 2}})));
}

TEST(OpBench, LabelsNameTheProduct) {
  Matmul::Args args;
  args.y = f32({4, 96});
  args.x = Tensor::dense(DType::kQ8, {4, 64});
  args.w = Tensor::dense(DType::kQ4_1, {96, 64});
  EXPECT_EQ(shape_label<Matmul>(args), "4x96x64");
  EXPECT_EQ(dtype_label<Matmul>(args), "q4_1/q8");
  args.x = f32({4, 64});
  EXPECT_EQ(dtype_label<Matmul>(args), "q4_1");
}

TEST(OpBench, EveryRowOfAnOpRunsAndAgreesWithTheReference) {
  OpBenchOptions options;
  options.op = "rmsnorm";
  options.warmup = 0;
  options.iterations = 2;
  options.min_seconds = 0;
  std::vector<BenchRow> rows;
  const int n_rows = run_op_bench(device_registry().find("cpu"), options,
                                  [&](const BenchRow& row) { rows.push_back(row); });
  ASSERT_GT(n_rows, 0);
  ASSERT_EQ(rows.size(), static_cast<size_t>(n_rows));
  for (const BenchRow& row : rows) {
    EXPECT_EQ(row.op, "rmsnorm");
    EXPECT_GT(row.time_ns.median, 0);
    EXPECT_LE(row.time_ns.p10, row.time_ns.p90);
    EXPECT_GT(row.ceiling.gflops, 0);
    EXPECT_GT(row.ceiling.gbs, 0);
    EXPECT_GT(row.ceiling.latency_ns, 0);
    ASSERT_TRUE(row.error.has_value());
    EXPECT_LT(*row.error, 1e-5);
  }
}

TEST(ModelBench, MeanAndDeviation) {
  const MeanDeviation result = mean_deviation({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(result.mean, 5);
  EXPECT_NEAR(result.deviation, 2.138, 1e-3);  // sample deviation: sqrt(32 / 7)
  EXPECT_EQ(mean_deviation({3}).deviation, 0);
}

TEST(ModelBench, LabelsAreThoseOfLlamaBench) {
  ModelTest test;
  test.n_prompt = 512;
  EXPECT_EQ(test.label(), "pp512");
  test = {};
  test.n_gen = 128;
  test.n_depth = 512;
  EXPECT_EQ(test.label(), "tg128 @ d512");
}

}  // namespace
}  // namespace tessera::bench
