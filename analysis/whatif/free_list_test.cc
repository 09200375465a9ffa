#include "analysis/whatif/free_list.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

TEST(FreeListTest, PieceThatWasInsertedLastIsFoundInItsPlace) {
  FreeList list;
  list.Insert({300, 0x1000, 1});
  list.Insert({200, 0x2000, 2});
  EXPECT_EQ(list.FindAtLeast(100)->block, 2u);
  list.Insert({200, 0x0800, 3});  // the lower address comes first
  EXPECT_EQ(list.FindAtLeast(200)->block, 3u);
  EXPECT_EQ(list.FindAtLeast(201)->block, 1u);
  EXPECT_FALSE(list.FindAtLeast(301));
}

TEST(FreeListTest, RandomChangesAgreeWithAnOrderedSet) {
  std::minstd_rand random(7);
  FreeList list;
  std::set<std::pair<uint64_t, uint64_t>> oracle;  // size and address
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t size = 1 + random() % 50, address = random() % 200;
    const bool is_present = oracle.contains({size, address});
    bool is_used = false;  // by a piece of another size
    for (const auto& [of, at] : oracle) is_used |= at == address;
    if (is_present) {
      list.Erase({size, address, 0});
      oracle.erase({size, address});
    } else if (!is_used) {
      list.Insert({size, address, 0});
      oracle.insert({size, address});
    }
    const uint64_t wanted = 1 + random() % 60;
    const auto expected = oracle.lower_bound({wanted, 0});
    const std::optional<FreePiece> found = list.FindAtLeast(wanted);
    ASSERT_EQ(found.has_value(), expected != oracle.end());
    if (!found) continue;
    ASSERT_EQ(std::pair(found->size, found->address), *expected);
    const std::optional<FreePiece> after = list.FindAfter(*found);
    ASSERT_EQ(after.has_value(), std::next(expected) != oracle.end());
    if (after) {
      ASSERT_EQ(std::pair(after->size, after->address), *std::next(expected));
    }
    if (random() % 64 == 0) {
      ASSERT_EQ(list.Ordered().size(), oracle.size());
    }
  }
}

}  // namespace
}  // namespace gmt::analysis
