#include <cmath>
#include <numeric>

#include "support.hpp"

namespace tessera::webgpu {
namespace {

// y[i] = x[i] * factor + addend for i < n
constexpr const char* kScale = R"(
struct Params { n: u32, factor: f32, addend: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < params.n) { y[id.x] = x[id.x] * params.factor + params.addend; }
}
)";

// One thread of each workgroup counts itself in its word.
constexpr const char* kMark = R"(
struct Params { n: u32 }
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3<u32>,
                                    @builtin(num_workgroups) count: vec3<u32>) {
  let i = group.y * count.x + group.x;
  if (i < params.n) { seen[i] = seen[i] + 1u; }
}
)";

struct Scale {
  uint32_t n;
  float factor, addend;
};

Kernel scale_kernel() {
  return {.file = "scale", .source = kScale};
}

std::vector<float> counting(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(WebGpuQueue, RunsARecordedStepAgainAndAgain) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor x = gpu.tensor(DType::kF32, {100}, counting(100));
  const Tensor y = gpu.empty(DType::kF32, {100});
  gpu.queue().begin();
  record(gpu.queue(), "scale", scale_kernel(), {read(x), read_write(y), uniform()},
         Scale{100, 2, 1}, {.x = 2});
  const auto step = gpu.queue().end();
  for (const float addend : {0.0f, 10.0f}) {
    std::vector<float> values = counting(100);
    for (float& value : values) value += addend;
    gpu.queue().write(*x.buffer, 0, std::as_bytes(std::span(values)));
    gpu.queue().submit(*step);
    gpu.queue().wait().value();
    const std::vector<float> got = gpu.values<float>(y);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], values[i] * 2 + 1) << i;
  }
}

TEST(WebGpuQueue, ReadsBackOneStepWhileTheNextIsOnItsWay) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  constexpr int kSteps = 5;
  const Tensor x = gpu.tensor(DType::kF32, {3}, counting(3));
  const Tensor y = gpu.empty(DType::kF32, {3});
  gpu.queue().begin();
  record(gpu.queue(), "scale", scale_kernel(), {read(x), read_write(y), uniform()}, Scale{3, 2, 0},
         {.x = 1});
  const auto step = gpu.queue().end();
  // Every step doubles what the one before it made, without the host in between.
  for (int i = 0; i < kSteps; ++i) {
    if (i > 0) gpu.queue().copy(x, y);
    gpu.queue().request(y);
    if (i == 1) gpu.queue().request(x.slice(1, 1));
    gpu.queue().submit(*step);
  }
  float factor = 1;
  for (int i = 0; i < kSteps; ++i) {
    factor *= 2;
    std::vector<float> got(3);
    gpu.queue().receive(std::as_writable_bytes(std::span(got))).value();
    EXPECT_EQ(got, (std::vector{factor, 2 * factor, 3 * factor})) << i;
    if (i != 1) continue;
    gpu.queue().receive(std::as_writable_bytes(std::span(got).first(1))).value();
    EXPECT_EQ(got[0], 4) << "x of step 1";
  }
}

TEST(WebGpuQueue, EveryDispatchHasItsOwnUniform) {
  TESSERA_NEEDS_ADAPTER();
  for (const bool default_limits : {false, true}) {
    Gpu gpu({.default_limits = default_limits});
    constexpr size_t kSteps = 300;  // more than one uniform buffer's page
    std::vector<Tensor> chain = {gpu.tensor(DType::kF32, {5}, counting(5))};
    gpu.queue().begin();
    for (size_t i = 0; i < kSteps; ++i) {
      chain.push_back(gpu.empty(DType::kF32, {5}));
      record(gpu.queue(), "scale", scale_kernel(),
             {read(chain[i]), read_write(chain[i + 1]), uniform()},
             Scale{5, 1, static_cast<float>(i)}, {.x = 1});
    }
    const auto step = gpu.queue().end();
    gpu.queue().submit(*step);
    gpu.queue().wait().value();
    // 0 + 1 + ... + 299, all whole numbers that f32 holds exactly.
    const float sum = kSteps * (kSteps - 1) / 2;
    const std::vector<float> got = gpu.values<float>(chain.back());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(i + 1) + sum);
  }
}

TEST(WebGpuQueue, GridsBeyondTheLimitAreFolded) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  for (const int64_t n : {int64_t{1}, gpu.capabilities().max_grid, gpu.capabilities().max_grid + 1,
                          2 * gpu.capabilities().max_grid + 77}) {
    const Grid grid = fold(n, gpu.capabilities());
    EXPECT_LE(grid.x, gpu.capabilities().max_grid);
    EXPECT_GE(grid.x * grid.y * grid.z, n);
    const std::vector<uint32_t> zeros(static_cast<size_t>(n) + 3);
    const Tensor seen = gpu.tensor(DType::kU32, {n + 3}, zeros);
    gpu.run({.file = "mark", .source = kMark}, {read_write(seen), uniform()},
            words({static_cast<uint32_t>(n)}), grid);
    std::vector<uint32_t> expected(static_cast<size_t>(n), 1);
    expected.resize(expected.size() + 3);
    EXPECT_TRUE(gpu.values<uint32_t>(seen) == expected) << n;
  }
}

TEST(WebGpuQueue, AnEmptyGridRecordsNothing) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor y = gpu.tensor(DType::kF32, {4}, counting(4));
  const Tensor x = gpu.tensor(DType::kF32, {4}, counting(4));
  gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({4, 0, 0}), {.x = 0});
  EXPECT_EQ(gpu.values<float>(y), counting(4));
}

TEST(WebGpuQueue, TensorsInsideABufferStartWhereTheyAre) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor whole = gpu.tensor(DType::kF32, {1000}, counting(1000));
  for (const int64_t first : {0, 1, 7, 64, 65, 999}) {
    Tensor part = Tensor::dense(DType::kF32, {1}, whole.buffer, first * 4);
    const int64_t element = first_element(part, gpu.capabilities());
    const Tensor y = gpu.empty(DType::kF32, {element + 1});
    gpu.run(scale_kernel(), {read(part), read_write(y), uniform()},
            words({static_cast<uint32_t>(element + 1), 0x3f800000 /* 1.0f */, 0}), {.x = 16});
    EXPECT_EQ(gpu.values<float>(y).back(), static_cast<float>(first + 1));
  }
}

/// Runs `call` and returns its Error.
template <typename F>
Error error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kCancelled, "", "");
}

bool mentions(const Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

TEST(WebGpuQueue, AShaderThatDoesNotCompileSaysWhichAndWhy) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor y = gpu.empty(DType::kF32, {4});
  const Kernel bad = {.file = "bad_shader",
                      .source =
                          "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
                          "@compute @workgroup_size(1) fn main() { y[0] = no_such_name; }\n"};
  const Error error = error_of([&] { gpu.run(bad, {read_write(y)}, {}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kDevice);
  EXPECT_TRUE(mentions(error, "bad_shader")) << error.what();
  EXPECT_TRUE(mentions(error, "no_such_name")) << error.what();
  // A missing entry and a binding that the text does not have: errors of the pipeline.
  Kernel no_entry = scale_kernel();
  no_entry.entry = "elsewhere";
  EXPECT_TRUE(mentions(error_of([&] { gpu.run(no_entry, {read_write(y)}, {}, {}); }), "elsewhere"));
  EXPECT_TRUE(
      mentions(error_of([&] { gpu.run(scale_kernel(), {read_write(y)}, {}, {}); }), "scale"));
  // The device still works.
  const Tensor x = gpu.tensor(DType::kF32, {4}, counting(4));
  gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({4, 0x40000000, 0}), {});
  EXPECT_EQ(gpu.values<float>(y), (std::vector<float>{2, 4, 6, 8}));
}

TEST(WebGpuQueue, RefusesWhatTheDeviceWould) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu({.default_limits = true});
  const Tensor y = gpu.empty(DType::kF32, {64});
  const Error twice = error_of([&] {
    gpu.run(scale_kernel(), {read(y), read_write(y), uniform()}, words({4, 0, 0}), {});
  });
  EXPECT_TRUE(mentions(twice, "bindings 0 and 1")) << twice.what();
  const Tensor x = gpu.empty(DType::kF32, {64});
  const Error grid = error_of([&] {
    gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({4, 0, 0}), {.x = 65536});
  });
  EXPECT_TRUE(mentions(grid, "65535")) << grid.what();
  const Tensor large = gpu.empty(DType::kF32, {(int64_t{128} << 18) + 4});
  const Error binding = error_of([&] {
    gpu.run(scale_kernel(), {read(large), read_write(y), uniform()}, words({4, 0, 0}), {});
  });
  EXPECT_EQ(binding.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(mentions(binding, "134217728")) << binding.what();
}

TEST(WebGpuQueue, AUniformOfTheWrongSizeIsRefusedWithTheKernelsLabel) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor x = gpu.tensor(DType::kF32, {4}, counting(4));
  const Tensor y = gpu.empty(DType::kF32, {4});
  // The uniform has 12 bytes in the kernel.
  const Error error = error_of([&] {
    gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({4}), {});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kDevice);
  EXPECT_TRUE(mentions(error, "scale")) << error.what();
  gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({4, 0x40000000, 0}), {});
  EXPECT_EQ(gpu.values<float>(y), (std::vector<float>{2, 4, 6, 8}));
}

TEST(WebGpuQueue, RunTimeChecksKeepReadsInside) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu({.runtime_checks = true});
  const Tensor x = gpu.tensor(DType::kF32, {4}, counting(4));
  const Tensor y = gpu.tensor(DType::kF32, {4}, counting(4));
  // Writes far behind the end must not arrive anywhere.
  gpu.run({.file = "outside",
           .source = "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
                     "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
                     "@compute @workgroup_size(1) fn main() {\n"
                     "  let far = u32(x[3]) * 1000000u;\n"
                     "  y[0] = x[far];\n"
                     "}\n"},
          {read(x), read_write(y)}, {}, {});
  const std::vector<float> got = gpu.values<float>(y);
  const std::vector<float> one_of_x = counting(4);
  EXPECT_TRUE(got[0] == 0 || std::find(one_of_x.begin(), one_of_x.end(), got[0]) != one_of_x.end());
}

TEST(WebGpuQueue, ALostDeviceIsAnErrorFromThenOn) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  const Tensor x = gpu.tensor(DType::kF32, {4}, counting(4));
  const Tensor y = gpu.empty(DType::kF32, {4});
  gpu.queue().begin();
  record(gpu.queue(), "scale", scale_kernel(), {read(x), read_write(y), uniform()}, Scale{4, 2, 1},
         {});
  const auto step = gpu.queue().end();
  wgpuDeviceDestroy(gpu.device().context().device());
  for (int i = 0; i < 2; ++i) {
    const Error submitted = error_of([&] {
      gpu.queue().submit(*step);
      gpu.queue().wait().value();
    });
    EXPECT_EQ(submitted.kind(), ErrorKind::kDeviceLost) << submitted.what();
    const Error read = error_of([&] { gpu.values<float>(y); });
    EXPECT_EQ(read.kind(), ErrorKind::kDeviceLost) << read.what();
    const Error written = error_of([&] { write_tensor(x, read_tensor(y)); });
    EXPECT_EQ(written.kind(), ErrorKind::kDeviceLost) << written.what();
    const Error allocated = error_of([&] { gpu.empty(DType::kF32, {4}); });
    EXPECT_EQ(allocated.kind(), ErrorKind::kDeviceLost) << allocated.what();
  }
}

TEST(WebGpuQueue, TimesAStep) {
  TESSERA_NEEDS_ADAPTER();
  Gpu gpu;
  if (!gpu.queue().enable_timing()) GTEST_SKIP() << "no timestamps on this device";
  constexpr int64_t kCount = 1 << 20;
  const Tensor x = gpu.tensor(DType::kF32, {kCount}, counting(kCount));
  const Tensor y = gpu.empty(DType::kF32, {kCount});
  const auto begin = std::chrono::steady_clock::now();
  gpu.run(scale_kernel(), {read(x), read_write(y), uniform()}, words({kCount, 0x3f800000, 0}),
          {.x = kCount / 64});
  const double wall_ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(gpu.queue().step_ns(), 1e3);  // 8 MiB take longer than that anywhere
  EXPECT_LT(gpu.queue().step_ns(), wall_ns);
}

}  // namespace
}  // namespace tessera::webgpu
