#include "viewer/index/packed_column.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::viewer {
namespace {

PackedColumn Packed(const std::vector<uint64_t>& values) {
  PackedColumnBuilder builder;
  for (uint64_t value : values) builder.Add(value);
  return builder.Finish();
}

void ExpectHolds(const PackedColumn& column, const std::vector<uint64_t>& values) {
  ASSERT_EQ(column.size(), values.size());
  PackedColumn::Values chunk;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % PackedColumn::kChunk == 0) column.Read(i / PackedColumn::kChunk, chunk);
    ASSERT_EQ(column[i], values[i]) << i;
    ASSERT_EQ(chunk[i % PackedColumn::kChunk], values[i]) << i;
  }
}

TEST(PackedColumnTest, EqualValuesTakeNoWords) {
  const PackedColumn column = Packed(std::vector<uint64_t>(1000, 7));
  EXPECT_TRUE(column.words().empty());
  ExpectHolds(column, std::vector<uint64_t>(1000, 7));
}

TEST(PackedColumnTest, CommonFactorIsNotStored) {
  std::vector<uint64_t> sizes;
  for (uint64_t i = 0; i < 64; ++i) sizes.push_back(512 * (1 + i % 8));
  const PackedColumn column = Packed(sizes);
  EXPECT_EQ(column.words().size(), 3u);
  ExpectHolds(column, sizes);
}

TEST(PackedColumnTest, RandomValuesOfEveryWidthRoundTrip) {
  ForEachSeed(SeedsUpTo(5), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    for (int bits = 1; bits <= 64; ++bits) {
      std::vector<uint64_t> values(random() % 300);
      const uint64_t base = random();
      for (uint64_t& value : values) value = base + (random() >> (64 - bits));
      ExpectHolds(Packed(values), values);
    }
  });
}

TEST(PackedColumnTest, ReadsZeroPastTheEnd) {
  const PackedColumn column = Packed({5, 6, 7});
  EXPECT_EQ(column[1000], 0u);
  PackedColumn::Values chunk;
  column.Read(9, chunk);
  EXPECT_EQ(chunk[0], 0u);
}

TEST(PackedColumnTest, ReadsArbitraryBytesWithinBounds) {
  ForEachSeed(SeedsUpTo(2000), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<PackedColumn::Chunk> chunks(1 + random() % 4);
    std::vector<uint64_t> words(random() % 40, 1);
    for (PackedColumn::Chunk& chunk : chunks) chunk = {random(), random() >> random() % 64};
    const PackedColumn column(random() % 500, chunks, words);
    PackedColumn::Values values;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 400; ++i) sum += column[i];
    for (uint64_t i = 0; i < 6; ++i) column.Read(i, values), sum += values[63];
    ::testing::Test::RecordProperty("sum", std::to_string(sum));
  });
}

}  // namespace
}  // namespace gmt::viewer
