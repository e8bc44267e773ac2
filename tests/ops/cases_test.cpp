// The cases themselves: accepted by their contracts, told apart by name, and filled as they say.

#include "ops/cases.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ops/all_ops.hpp"
#include "tensor/convert.hpp"

namespace tessera {
namespace {

template <typename Op>
void check_cases() {
  std::set<std::string> names;
  int n_quick = 0, n_bench = 0;
  for (const Case<Op>& c : cases<Op>()) {
    const std::string label = std::string(Op::kName) + " / " + c.name;
    EXPECT_TRUE(names.insert(c.name).second) << label << " is there twice";
    EXPECT_NO_THROW(Op::validate(c.args)) << label;
    std::set<std::string, std::less<>> tensors;
    Op::visit(c.args, [&](std::string_view name, const Tensor& tensor, Access) {
      if (tensor.defined()) tensors.emplace(name);
      EXPECT_EQ(tensor.buffer, nullptr) << label;
    });
    for (const auto& [name, fill] : c.fills) {
      EXPECT_TRUE(tensors.contains(name)) << label << " fills " << name << ", which it lacks";
    }
    n_quick += c.test && c.quick ? 1 : 0;
    n_bench += c.bench ? 1 : 0;
  }
  EXPECT_GT(n_quick, 10) << Op::kName;
  EXPECT_GT(n_bench, 0) << Op::kName;
}

TEST(Cases, AreValidAndNamedOnce) {
#define TESSERA_CHECK_CASES(Op) check_cases<Op>();
  TESSERA_FOR_EACH_OP(TESSERA_CHECK_CASES)
#undef TESSERA_CHECK_CASES
}

TEST(Cases, TheSameSeedGivesTheSameBytes) {
  const Tensor tensor = f32({3, 50});
  EXPECT_EQ(make_bytes(tensor, fill::normal(), 7), make_bytes(tensor, fill::normal(), 7));
  EXPECT_NE(make_bytes(tensor, fill::normal(), 7), make_bytes(tensor, fill::normal(), 8));
}

TEST(Cases, PaddingBetweenRowsIsPoisonedAndNotDecoded) {
  const Tensor tensor = with_gap(f32({2, 3}), 2);
  const auto bytes = make_bytes(tensor, fill::values({1, 2, 3, 4, 5, 6}), 0);
  ASSERT_EQ(bytes.size(), 8 * sizeof(float));  // the last row has no gap behind it
  for (size_t i = 12; i < 20; ++i) EXPECT_EQ(bytes[i], std::byte{0xff});
  EXPECT_EQ(decode(tensor, bytes), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Cases, RandomBlocksHoldFiniteValuesOfAUsualSize) {
  for (const DType dtype : ops::kWeightTypes) {
    const Tensor tensor = Tensor::dense(dtype, {20, 512});
    double squares = 0;
    for (const double value : decode(tensor, make_bytes(tensor, fill::normal(), 3))) {
      ASSERT_TRUE(std::isfinite(value)) << name(dtype);
      squares += value * value;
    }
    const double size = std::sqrt(squares / (20 * 512));
    EXPECT_GT(size, 0.3) << name(dtype);
    EXPECT_LT(size, 3) << name(dtype);
  }
}

}  // namespace
}  // namespace tessera
