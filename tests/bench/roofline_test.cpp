#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bench/roofline.hpp"
#include "bench/roofline_svg.hpp"

namespace tessera::bench {
namespace {

// A computer that computes or reads nothing, and one of next century, are outside of these.
TEST(Probes, MemoryFiguresAreThoseOfAComputer) {
  Probes probes(2, {});
  for (const int64_t bytes : {int64_t{1}, int64_t{32} << 10, int64_t{8} << 20}) {
    EXPECT_GT(probes.copy_gbs(bytes), 0.001) << bytes;
    EXPECT_LT(probes.copy_gbs(bytes), 10'000) << bytes;
    EXPECT_GT(probes.latency_ns(bytes), 0.1) << bytes;
    EXPECT_LT(probes.latency_ns(bytes), 100'000) << bytes;
  }
}

TEST(Probes, APeakIsMeasuredOrItIsSaidWhyNot) {
  Probes probes(1, {});
  for (int i = 0; i < kNumPeaks; ++i) {
    const auto peak = static_cast<Peak>(i);
    const std::string why = missing(peak);
    const auto gops = probes.peak_gops(peak);
    EXPECT_EQ(gops.has_value(), why.empty()) << name(peak) << ": " << why;
    if (gops) {
      EXPECT_GT(*gops, 0.01) << name(peak);
      EXPECT_LT(*gops, 100'000) << name(peak);
    }
  }
  EXPECT_EQ(missing(Peak::kF32), "");
}

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "tessera_caches";
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void add(int index, const char* level, const char* type, const char* size, const char* cpus) {
    const auto path = folder_ / ("index" + std::to_string(index));
    std::filesystem::create_directories(path);
    std::ofstream(path / "level") << level << "\n";
    std::ofstream(path / "type") << type << "\n";
    std::ofstream(path / "size") << size << "\n";
    std::ofstream(path / "shared_cpu_list") << cpus << "\n";
  }
  std::filesystem::path folder_;
};

TEST_F(CacheFolder, DataCachesAreReadAndInstructionsLeftOut) {
  add(0, "1", "Data", "48K", "0");
  add(1, "1", "Instruction", "32K", "0");
  add(2, "2", "Unified", "2048K", "0,64");
  add(3, "3", "Unified", "300M", "0-31,64-95");
  const auto caches = data_caches(folder_.string());
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[0].name, "L1");
  EXPECT_EQ(caches[0].size_bytes, 48 << 10);
  EXPECT_EQ(caches[0].n_sharing, 1);
  EXPECT_EQ(caches[1].size_bytes, 2 << 20);
  EXPECT_EQ(caches[1].n_sharing, 2);
  EXPECT_EQ(caches[2].name, "L3");
  EXPECT_EQ(caches[2].size_bytes, int64_t{300} << 20);
  EXPECT_EQ(caches[2].n_sharing, 64);
}

TEST_F(CacheFolder, ASystemThatDoesNotTellHasNone) {
  EXPECT_TRUE(data_caches(folder_.string()).empty());
  add(0, "1", "Data", "many", "0");
  EXPECT_TRUE(data_caches(folder_.string()).empty());
}

/// A made-up machine with `n_points` kernels at nearly the same place.
Roofline example_roofline(int n_points) {
  Roofline roofline;
  roofline.origin = {.machine = "A <fast> & simple machine", .commit = "abc", .date = "2026-01-01"};
  roofline.isa = "avx2";
  Ceilings ceilings;
  ceilings.n_threads = 2;
  ceilings.levels = {{.name = "L1", .bytes = 48 << 10, .read_gbs = 500, .copy_gbs = 400},
                     {.name = "L2", .bytes = 2 << 20, .read_gbs = 160, .copy_gbs = 90},
                     {.name = "L3", .bytes = 240 << 20, .read_gbs = 50, .copy_gbs = 40},
                     {.name = "memory", .bytes = 512 << 20, .read_gbs = 40, .copy_gbs = 30}};
  ceilings.peaks = {{Peak::kF32, 400}, {Peak::kBf16, 390}, {Peak::kInt8, 1500}};
  roofline.ceilings = {ceilings};
  for (int i = 0; i < n_points; ++i) {
    RooflinePoint point;
    point.group = i % 2 == 0 ? "decode" : "prefill";
    point.label = "kernel " + std::to_string(i);
    point.row.flops = 3e6 + 1e4 * i;
    point.row.bytes = 1e6;
    point.row.time_ns.median = 1e5;
    roofline.points.push_back(point);
  }
  return roofline;
}

TEST(Roofline, BalanceIsPeakOverReadRate) {
  const Roofline roofline = example_roofline(0);
  const Ceilings& ceilings = roofline.all_threads();
  EXPECT_DOUBLE_EQ(balance(ceilings.peaks[0], ceilings.levels[3]), 10);
  EXPECT_DOUBLE_EQ(balance(ceilings.peaks[2], ceilings.levels[0]), 3);
  const auto json = to_json(roofline);
  EXPECT_DOUBLE_EQ(json["ceilings"][0]["peaks"]["f32"]["balance"]["memory"], 10);
  EXPECT_DOUBLE_EQ(json["ceilings"][0]["peaks"]["int8"]["gops"], 1500);
}

TEST(RooflineChart, EveryPointAndRoofHasALabelAndNoneOverlap) {
  for (const int n_points : {1, 18, 30}) {
    const Chart chart = lay_out(example_roofline(n_points));
    ASSERT_EQ(chart.marks.size(), static_cast<size_t>(n_points));
    EXPECT_EQ(chart.labels.size(), static_cast<size_t>(n_points) + 4 + 3);
    for (const Label& a : chart.labels) {
      for (const Box& box : a.boxes) {
        EXPECT_TRUE(box.inside(chart.plot)) << a.text;
        for (const Label& b : chart.labels) {
          if (&a == &b) continue;
          for (const Box& other : b.boxes) {
            ASSERT_FALSE(box.overlaps(other)) << a.text << " and " << b.text;
          }
        }
      }
    }
  }
}

TEST(RooflineChart, AxesAreLogarithmicAndHoldEverything) {
  Roofline roofline = example_roofline(1);
  roofline.points[0].row.flops = 2e3;  // 0.002 a byte
  const Chart chart = lay_out(roofline);
  EXPECT_NEAR(chart.x(10) - chart.x(1), chart.x(100) - chart.x(10), 1e-9);
  EXPECT_NEAR(chart.y(1) - chart.y(10), chart.y(10) - chart.y(100), 1e-9);
  EXPECT_GT(chart.marks[0].at.x, chart.plot.left);
  EXPECT_LT(chart.marks[0].at.y, chart.plot.bottom);
  EXPECT_NEAR(chart.marks[0].at.x, chart.x(0.002), 1e-9);
  EXPECT_NEAR(chart.marks[0].at.y, chart.y(0.02), 1e-9);
  // A kernel that only moves bytes has no place on it.
  roofline.points[0].row.flops = 0;
  EXPECT_TRUE(lay_out(roofline).marks.empty());
}

/// Every element is closed, in order: enough to catch a broken string.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(RooflineSvg, IsWellFormedAndKnowsBothThemes) {
  const std::string svg = to_svg(example_roofline(12));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  expect_well_formed(svg);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(svg.find("A &lt;fast&gt; &amp; simple machine"), std::string::npos);
  EXPECT_NE(svg.find("2026-01-01"), std::string::npos);
  EXPECT_NE(svg.find(">kernel 7 0 %<"), std::string::npos);
}

}  // namespace
}  // namespace tessera::bench
