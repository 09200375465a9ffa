#include "analysis/trace/column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMany = 200'000;  // several chunks

TEST(Column, HoldsWhatWasPushed) {
  Column<uint32_t> column;
  EXPECT_TRUE(column.empty());
  for (uint32_t i = 0; i < kMany; ++i) column.push_back(i * 3);
  ASSERT_EQ(column.size(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) ASSERT_EQ(column[i], i * 3);
}

TEST(Column, ExistingValuesAreNotMoved) {
  Column<uint64_t> column;
  GrowTo(column, 70'000, 7);
  const uint64_t* place = &column[66'000];
  GrowTo(column, kMany);
  EXPECT_EQ(place, &column[66'000]);
  EXPECT_EQ(column[69'999], 7u);
  EXPECT_EQ(column[70'000], 0u);
}

TEST(UniformColumn, HoldsWhatWasPushedAndSet) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    UniformColumn<uint16_t> column;
    std::vector<uint16_t> values;
    std::mt19937 random(seed);
    for (size_t i = 0; i < kMany; ++i) {
      const bool is_in_a_run = i / 9000 % 2 == 0;
      values.push_back(static_cast<uint16_t>(is_in_a_run ? 5 : random() % 3));
      column.push_back(values.back());
      if (random() % 5000 != 0) continue;
      const size_t at = random() % values.size();
      values[at] = static_cast<uint16_t>(random() % 4 + 4);
      column.Set(at, values[at]);
    }
    ASSERT_EQ(column.size(), kMany);
    for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(column[i], values[i]) << i;
  });
}

TEST(UniformColumn, LastChunkGrowsAfterASetValue) {
  UniformColumn<uint32_t> column;
  for (int i = 0; i < 10; ++i) column.push_back(7);
  column.Set(9, 8);
  column.push_back(7);
  EXPECT_THAT(std::vector<uint32_t>(column.begin(), column.end()),
              testing::ElementsAre(7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7));
}

TEST(UniformColumn, RunsAreOfEqualValuesAndCoverWholeChunks) {
  UniformColumn<uint32_t> column;
  for (size_t i = 0; i < kMany; ++i)
    column.push_back(i / 50'000 == 2 ? static_cast<uint32_t>(i) : 7);
  size_t runs = 0;
  for (size_t at = 0; at < kMany; ++runs) {
    const size_t end = column.EndOfRun(at);
    ASSERT_GT(end, at);
    ASSERT_LE(end, kMany);
    for (const uint32_t first = column[at]; at < end; ++at) ASSERT_EQ(column[at], first);
  }
  EXPECT_LT(runs, 60'000u);
}

TEST(OffsetColumn, HoldsWhatWasPushedAndSet) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    AscendingColumn ascending;
    SmallColumn small;
    std::vector<uint32_t> steps, numbers;
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < kMany; ++i) {
      steps.push_back(2 * i + random() % 2);
      numbers.push_back(random() % (i / 50'000 % 2 == 0 ? 60'000 : 200'000));
      ascending.push_back(steps.back());
      small.push_back(numbers.back());
      if (random() % 5000 != 0) continue;
      const size_t at = random() % steps.size();
      steps[at] = random();
      numbers[at] = random() % 60'000;
      ascending.Set(at, steps[at]);
      small.Set(at, numbers[at]);
    }
    ASSERT_EQ(ascending.size(), kMany);
    for (size_t i = 0; i < kMany; ++i) {
      ASSERT_EQ(ascending[i], steps[i]) << i;
      ASSERT_EQ(small[i], numbers[i]) << i;
    }
  });
}

TEST(AddressColumn, AddressesOfAnyAlignmentAndDistance) {
  AddressColumn column;
  std::vector<uint64_t> addresses = {0x7f00'0000'0000, 0x7eff'ffff'ff00, 0x7f80'0000'0000, 0};
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kMany; ++i)
    addresses.push_back(0x7f00'0000'0000 + (random() % (1u << 30) << (i < kMany / 2 ? 9 : 0)));
  addresses.push_back(UINT64_MAX);
  addresses.push_back(1);
  for (const uint64_t address : addresses) column.push_back(address);
  ASSERT_EQ(column.size(), addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) ASSERT_EQ(column[i], addresses[i]) << i;
}

TEST(SizeColumn, SizesBelowAndAboveFourGibibytes) {
  SizeColumn column;
  std::vector<uint64_t> sizes = {1, UINT32_MAX, 0, uint64_t{UINT32_MAX} + 1, UINT64_MAX, 3};
  for (size_t i = 0; i < kMany; ++i) sizes.push_back(i % 7000 == 0 ? uint64_t{9} << 32 : i * 512);
  for (const uint64_t size : sizes) column.push_back(size);
  for (size_t i = 0; i < sizes.size(); ++i) ASSERT_EQ(column[i], sizes[i]) << i;
}

TEST(CodedColumn, FewValues) {
  CodedColumn<uint64_t> column;
  for (size_t i = 0; i < kMany; ++i) column.push_back(0x7f00'0000'0000 + i % 5);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(column[i], 0x7f00'0000'0000 + i % 5);
}

TEST(CodedColumn, MoreValuesThanCodesAreHeldInFull) {
  CodedColumn<uint64_t> column;
  for (size_t i = 0; i < kMany; ++i) column.push_back(i % 70'000);
  ASSERT_EQ(column.size(), kMany);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(column[i], i % 70'000);
}

TEST(CodedColumn, FirstValueMayBeAny) {
  for (const uint32_t first : {0u, 1u, UINT32_MAX}) {
    CodedColumn<uint32_t> column;
    for (const uint32_t value : {first, first, 0u, first}) column.push_back(value);
    EXPECT_THAT(std::vector<uint32_t>(column.begin(), column.end()),
                testing::ElementsAre(first, first, 0u, first));
  }
}

TEST(CodedColumn, NegativeNumbers) {
  CodedColumn<int32_t> column;
  for (int32_t value : {-1, 0, -1, INT32_MAX, INT32_MIN}) column.push_back(value);
  EXPECT_EQ(column[2], -1);
  EXPECT_EQ(column[3], INT32_MAX);
  EXPECT_EQ(column[4], INT32_MIN);
}

TEST(TimeColumn, IncreasingTimes) {
  ForEachSeed({1}, [](uint32_t seed) {
    TimeColumn column;
    std::mt19937 random(seed);
    std::vector<int64_t> times;
    int64_t t_ns = -5;
    for (size_t i = 0; i < kMany; ++i) {
      t_ns += static_cast<int64_t>(random() % 20'000) - 1'000;
      times.push_back(t_ns);
      column.push_back(t_ns);
    }
    ASSERT_EQ(column.size(), kMany);
    for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(column[i], times[i]);
  });
}

TEST(TimeColumn, JumpsOfAnySizeInBothDirections) {
  TimeColumn column;
  const std::vector<int64_t> times = {
      0, 5'000'000'000, -5'000'000'000, INT64_MAX, INT64_MIN, 1, INT64_MIN, 0};
  for (int64_t t_ns : times) column.push_back(t_ns);
  for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(column[i], times[i]) << i;
}

TEST(TimeColumn, FirstTimeIsTheSmallestPossible) {
  TimeColumn column;
  column.push_back(INT64_MIN);
  column.push_back(INT64_MIN + 1);
  EXPECT_EQ(column[0], INT64_MIN);
  EXPECT_EQ(column[1], INT64_MIN + 1);
}

}  // namespace
}  // namespace gmt::analysis
