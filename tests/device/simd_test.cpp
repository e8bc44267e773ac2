// The stated error bounds of the vector functions, on every tier that the machine runs.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/isa.hpp"
#include "simd_functions.hpp"

namespace tessera::cpu {
namespace {

struct TieredFunctions {
  Tier tier;
  SimdFunctions functions;
};
std::vector<TieredFunctions> tiers() {
  SimdFunctions (*const all[kNumTiers])() = TESSERA_TIER_TABLE(simd_functions);
  std::vector<TieredFunctions> result;
  for (const Tier tier : available_tiers()) {
    const auto functions = all[static_cast<size_t>(tier)];
    if (functions) result.push_back({tier, functions()});
  }
  return result;
}

/// Finite floats of both signs and every exponent: each 1009th bit pattern, and both sides
/// of each power of two.
std::vector<float> sample() {
  std::vector<float> x;
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t bits = 0; bits < 0x7f800000; bits += 1009) {
      x.push_back(std::bit_cast<float>(sign | bits));
    }
    for (uint32_t exponent = 1; exponent < 255; ++exponent) {
      x.push_back(std::bit_cast<float>(sign | (exponent << 23)));
      x.push_back(std::bit_cast<float>(sign | ((exponent << 23) - 1)));
    }
  }
  while (x.size() % 16 != 0) x.push_back(0);
  return x;
}

/// |got - exact| in units of the last place of a float of exact's size.
double error_in_ulps(float got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);  // |exact| in [2^(exponent - 1), 2^exponent)
  return std::abs(got - exact) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

class SimdFunctionsTest : public testing::TestWithParam<TieredFunctions> {};
INSTANTIATE_TEST_SUITE_P(Tiers, SimdFunctionsTest, testing::ValuesIn(tiers()),
                         [](const auto& instance) {
                           return std::string(name(instance.param.tier));
                         });

TEST_P(SimdFunctionsTest, ExpIsWithinItsBound) {
  const std::vector<float> x = sample();
  std::vector<float> y(x.size());
  GetParam().functions.exp(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (x[i] > 88.73f) {
      ASSERT_EQ(y[i], std::numeric_limits<float>::infinity()) << x[i];
    } else if (x[i] < -104.0f) {
      ASSERT_EQ(y[i], 0.0f) << x[i];
    } else if (exact < std::numeric_limits<float>::max()) {
      const double error = error_in_ulps(y[i], exact);
      if (error > worst) worst_at = x[i];
      worst = std::max(worst, error);
    }
  }
  EXPECT_LE(worst, 1.1) << "at " << worst_at;
  RecordProperty("worst_ulps", std::to_string(worst));
}

TEST_P(SimdFunctionsTest, TanhIsWithinItsBound) {
  const std::vector<float> x = sample();
  std::vector<float> y(x.size());
  GetParam().functions.tanh(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = error_in_ulps(y[i], std::tanh(static_cast<double>(x[i])));
    if (error > worst) worst_at = x[i];
    worst = std::max(worst, error);
    ASSERT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
  }
  EXPECT_LE(worst, 2.5) << "at " << worst_at;
  RecordProperty("worst_ulps", std::to_string(worst));
}

TEST_P(SimdFunctionsTest, NanPassesThrough) {
  const std::vector<float> x(16, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> y(16);
  GetParam().functions.exp(x.data(), y.data(), 16);
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
  GetParam().functions.tanh(x.data(), y.data(), 16);
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace tessera::cpu
