#include <gtest/gtest.h>

#include "api/devices.hpp"
#include "base/error.hpp"
#include "bench/op_bench.hpp"

namespace tessera::bench {
namespace {

std::vector<BenchRow> compare(const std::string& dtype, const std::string& libraries) {
  OpBenchOptions options;
  options.op = "matmul";
  options.shape = "5x7x32";
  options.dtype = dtype;
  options.compare = libraries;
  options.warmup = 0;
  options.iterations = 2;
  options.min_seconds = 0;
  std::vector<BenchRow> rows;
  run_op_bench(device_registry().find("cpu"), options,
               [&](const BenchRow& row) { rows.push_back(row); });
  return rows;
}

TEST(Compare, ALibraryRunsOnTheSameOperandsAndAgrees) {
  const auto rows = compare("f32", "openblas=" TESSERA_FAKE_BLAS);
  ASSERT_FALSE(rows.empty());
  for (const BenchRow& row : rows) {
    ASSERT_EQ(row.peers.size(), 1U) << row.row;
    EXPECT_EQ(row.peers[0].name, "openblas");
    EXPECT_EQ(row.peers[0].path, TESSERA_FAKE_BLAS);
    EXPECT_GT(row.peers[0].time_ns.median, 0);
    EXPECT_LT(row.peers[0].error, 1e-5);
    const auto json = to_json(row);
    EXPECT_DOUBLE_EQ(json["peers"]["openblas"]["ratio"],
                     row.peers[0].time_ns.median / row.time_ns.median);
  }
}

TEST(Compare, OtherTypesHaveNoCounterpart) {
  for (const BenchRow& row : compare("q8_0/q8", "openblas=" TESSERA_FAKE_BLAS)) {
    EXPECT_TRUE(row.peers.empty());
    EXPECT_NE(table_line(row, {"openblas"}).find(" -\n"), std::string::npos);
  }
}

void expect_refused(const std::string& libraries, ErrorKind kind, const std::string& part) {
  try {
    compare("f32", libraries);
    ADD_FAILURE() << libraries << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Compare, WhatIsNotThereIsSaid) {
  expect_refused("onednn=/nonexistent/libdnnl.so", ErrorKind::kUnsupported, "TESSERA_ONEDNN");
  expect_refused("eigen", ErrorKind::kInvalidArgument, "openblas, onednn, blis, mkl");
  expect_refused("openblas=libm.so.6", ErrorKind::kUnsupported, "cblas_sgemm");
}

}  // namespace
}  // namespace tessera::bench
