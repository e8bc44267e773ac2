#include "engine/kv_pool.hpp"

#include <gtest/gtest.h>

#include "api/devices.hpp"
#include "base/error.hpp"

namespace tessera {
namespace {

class KvPoolTest : public ::testing::Test {
 protected:
  static ModelFacts facts() {
    ModelFacts facts;
    facts.n_layers = 2;
    facts.n_kv_heads = 3;
    facts.head_dim = 4;
    return facts;
  }
  /// Fills the page of every layer with bytes of its own.
  void fill(uint32_t page, int value) {
    for (const auto& tensors : {pool.view().k_pages, pool.view().v_pages}) {
      for (const Tensor& pages : tensors) {
        const Tensor slab = pages.slice(page, 1);
        write_tensor(slab, std::vector<std::byte>(static_cast<size_t>(slab.span_bytes()),
                                                  static_cast<std::byte>(value++)));
      }
    }
  }
  int first_byte(uint32_t page, size_t layer, bool v) const {
    const KvView view = pool.view();
    return static_cast<int>(
        read_tensor((v ? view.v_pages : view.k_pages)[layer].slice(page, 1))[0]);
  }

  std::unique_ptr<Device> device =
      device_registry().find("mock").kind->make(0, {.n_threads = 1, .isa = {}});
  KvPool pool{*device, facts(), DType::kF32, 6};
};

TEST_F(KvPoolTest, TakesOnePagePer32Tokens) {
  PageTable table;
  pool.reserve(table, 0, 1);
  EXPECT_EQ(table.size(), 1u);
  pool.reserve(table, 1, 32);
  EXPECT_EQ(table.size(), 1u);
  pool.reserve(table, 32, 33);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(pool.n_free_pages(), 4);
  EXPECT_NE(table[0], table[1]);
}

TEST_F(KvPoolTest, TruncatingGivesPagesBack) {
  PageTable table;
  pool.reserve(table, 0, 100);
  ASSERT_EQ(table.size(), 4u);
  pool.truncate(table, 33);
  EXPECT_EQ(table.size(), 2u);
  pool.truncate(table, 32);
  EXPECT_EQ(table.size(), 1u);
  pool.truncate(table, 0);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(pool.n_free_pages(), 6);
}

TEST_F(KvPoolTest, RefusesWhatDoesNotFitAndLeavesTheTableAlone) {
  PageTable table;
  pool.reserve(table, 0, 40);
  const PageTable before = table;
  try {
    pool.reserve(table, 40, 32 * 6 + 1);
    FAIL() << "7 pages out of 6";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  EXPECT_EQ(table, before);
  EXPECT_EQ(pool.n_free_pages(), 4);
}

TEST_F(KvPoolTest, SharedPagesLiveAsLongAsAnybodyHasThem) {
  PageTable table;
  pool.reserve(table, 0, 64);
  PageTable other = pool.share(table, 64);
  EXPECT_EQ(other, table);
  EXPECT_EQ(pool.n_free_pages(), 4);
  pool.truncate(table, 0);
  EXPECT_EQ(pool.n_free_pages(), 4);
  pool.truncate(other, 0);
  EXPECT_EQ(pool.n_free_pages(), 6);
}

TEST_F(KvPoolTest, WritingIntoASharedPageCopiesItInEveryLayer) {
  PageTable table;
  pool.reserve(table, 0, 40);
  fill(table[0], 10);
  fill(table[1], 20);
  PageTable other = pool.share(table, 40);
  pool.reserve(other, 40, 41);
  EXPECT_EQ(other[0], table[0]) << "a full page is never written again";
  ASSERT_NE(other[1], table[1]);
  EXPECT_EQ(pool.n_free_pages(), 3);
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(first_byte(other[1], layer, false), 20 + static_cast<int>(layer));
    EXPECT_EQ(first_byte(other[1], layer, true), 22 + static_cast<int>(layer));
  }
  // The first owner is alone again and writes in place.
  const uint32_t own = table[1];
  pool.reserve(table, 40, 41);
  EXPECT_EQ(table[1], own);
}

TEST_F(KvPoolTest, SharingAtAPageBoundaryNeedsNoCopy) {
  PageTable table;
  pool.reserve(table, 0, 64);
  PageTable other = pool.share(table, 32);
  pool.reserve(other, 32, 33);
  EXPECT_EQ(other[0], table[0]);
  EXPECT_NE(other[1], table[1]);
  EXPECT_EQ(pool.n_free_pages(), 3);
}

TEST_F(KvPoolTest, ACopyCountsAsANewPage) {
  PageTable table;
  pool.reserve(table, 0, 32 * 5 + 1);
  EXPECT_EQ(pool.n_free_pages(), 0);
  PageTable other = pool.share(table, 1);
  EXPECT_THROW(pool.reserve(other, 1, 2), Error);
  EXPECT_EQ(other[0], table[0]);
}

}  // namespace
}  // namespace tessera
