#include "format/recurring_addresses.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

TEST(RecurringAddressesTest, ExampleOfTheHeader) {
  RecurringAddressWriter writer;
  EXPECT_EQ(writer.Add(0x1000, 512), 0u);
  EXPECT_EQ(writer.Add(0x1200, 256), 1u);
  EXPECT_EQ(writer.Add(0x1000, 128), 4u);
}

TEST(RecurringAddressesTest, NothingIsKnownOfAnEarlierChunk) {
  RecurringAddressWriter writer;
  writer.Add(0x1000, 512);
  writer.Clear();
  EXPECT_EQ(writer.Add(0x1000, 512), 0u);
  EXPECT_EQ(writer.Add(0x1000, 512), 2u);
}

TEST(RecurringAddressesTest, ReferencesBeforeTheFirstRowAreNotFound) {
  RecurringAddressReader reader(0);
  uint64_t address = 7;
  EXPECT_FALSE(reader.Find(1, &address));
  reader.Add(0x1000, 512);
  EXPECT_FALSE(reader.Find(0, &address));
  EXPECT_FALSE(reader.Find(3, &address));
  EXPECT_FALSE(reader.Find(UINT32_MAX, &address));
  EXPECT_EQ(address, 7u);
}

// The obvious version searches all earlier begins and ends, newest first.
TEST(RecurringAddressesTest, ReferencesAreTheNewestAndAreResolved) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    RecurringAddressWriter writer;
    for (int chunk = 0; chunk < 3; ++chunk) {
      RecurringAddressReader reader(0);
      std::vector<uint64_t> known;
      for (int row = 0; row < 500; ++row) {
        const uint64_t address = random() % 20 == 0 ? random() : random() % 64 << 9;
        const uint64_t size = random() % 20 == 0 ? random() : (1 + random() % 8) << 9;
        const uint32_t from = writer.Add(address, size);
        if (from != 0) {
          uint64_t found = 0;
          ASSERT_TRUE(reader.Find(from, &found));
          ASSERT_EQ(found, address);
          for (uint32_t newer = 1; newer < from; ++newer)
            ASSERT_NE(known[known.size() - newer], address);
        }
        reader.Add(address, size);
        known.push_back(address);
        known.push_back(address + size);
      }
      writer.Clear();
    }
  });
}

}  // namespace
}  // namespace gmt::format
