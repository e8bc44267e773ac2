#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "fixed_kernel_runner.hpp"
#include "support.hpp"
#include "webgpu/fixed_kernels.hpp"

namespace tessera::webgpu {

// The files with a fixed interface against f64 loops, driven through nothing but their table. The
// tests whose suite is FixedKernelsSlow take a software driver minutes.

using Floats = std::vector<float>;
using Words = std::vector<uint32_t>;

inline constexpr double kUnit = 0x1p-24;       // rounding of one f32 operation
inline constexpr double kSmallest = 0x1p-126;  // f32 below this may be flushed to zero

/// What a binding should hold, each value with the error that its kernel may make.
struct Expected {
  std::vector<double> values, tolerances;
  void add(double value, double tolerance) {
    values.push_back(value);
    tolerances.push_back(tolerance + kSmallest);
  }
};

/// One run of a kernel, and what should come of it.
struct FixedTest {
  const FixedKernel& kernel;
  Words uniform;
  std::vector<Bytes> bindings;
  std::vector<std::pair<size_t, Expected>> expected;  // binding, contents
};

inline Floats random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
  uint32_t state = seed * 2654435761u + 1;
  Floats values(n);
  for (float& value : values) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    value = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * scale;
  }
  return values;
}

/// Storage of `n` values full of NaN: every output has to be written.
inline Bytes unwritten(size_t n) {
  return bytes_of(Words(n, 0x7fc00000u));
}

inline std::string words_text(const Words& words) {
  std::string text = "(";
  for (const uint32_t word : words) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", word);
  return text + ")";
}

/// The worst value of a binding, measured in its tolerance.
inline void compare(const std::string& what, const Bytes& bytes, const Expected& expected) {
  Floats got(bytes.size() / 4);
  std::memcpy(got.data(), bytes.data(), bytes.size());
  ASSERT_EQ(got.size(), expected.values.size()) << what;
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected.values[i]) / expected.tolerances[i];
    if (!(error <= worst)) {  // NaN counts as worst
      worst = error;
      at = i;
      if (std::isnan(error)) break;
    }
  }
  EXPECT_LE(worst, 1.0) << what << ": element " << at << " is " << got[at] << ", expected "
                        << expected.values[at] << " +- " << expected.tolerances[at];
}

class FixedKernels : public ::testing::Test {
 protected:
  static FixedKernelRunner& runner(bool runtime_checks) {
    std::optional<FixedKernelRunner>& made = runners_[runtime_checks ? 1 : 0];
    if (!made) made.emplace(ContextOptions{.runtime_checks = runtime_checks});
    return *made;
  }
  static void TearDownTestSuite() {
    for (auto& made : runners_) made.reset();
  }

  static bool available(const FixedKernel& kernel) {
    const Capabilities& capabilities = runner(false).context().capabilities();
    return (!kernel.needs_f16 || capabilities.f16) &&
           (!kernel.needs_subgroups || capabilities.subgroups);
  }

  /// Without run-time checks twice, with them once: right and the same bits. Also folded, into as
  /// many groups a dimension as `max_grid` says.
  static void verify(const FixedTest& test, int64_t max_grid = 65535) {
    if (!available(test.kernel)) GTEST_SKIP() << "the adapter lacks what this entry needs";
    const Grid grid = fixed_grid(test.kernel, test.uniform, max_grid);
    const std::string what = fmt::format("{} {} grid {}x{}x{}", test.kernel.label(),
                                         words_text(test.uniform), grid.x, grid.y, grid.z);
    SCOPED_TRACE(what);
    const auto first = runner(false).run(test.kernel, test.uniform, test.bindings, grid);
    for (const auto& [binding, expected] : test.expected) {
      compare(what, first.at(binding), expected);
    }
    EXPECT_TRUE(runner(false).run(test.kernel, test.uniform, test.bindings, grid) == first)
        << "other bits the second time";
    const auto checked = runner(true).run(test.kernel, test.uniform, test.bindings, grid);
    for (const auto& [binding, expected] : test.expected) {
      compare(what + " with run-time checks", checked.at(binding), expected);
    }
  }

 private:
  static inline std::optional<FixedKernelRunner> runners_[2];
};

class FixedKernelsSlow : public FixedKernels {};

}  // namespace tessera::webgpu
