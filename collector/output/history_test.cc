#include "collector/output/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "collector/clock.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(HistoryTest, PartsAreFractionsOfTheLimits) {
  session::Options options;
  session::ParseOptions(
      "max_size=64MiB,max_time=8s,rotate=4", &options, [](void*, const session::OptionError&) {},
      nullptr);
  History history(LimitsOf(options), 0);
  EXPECT_EQ(history.WhyToEnd(15 * kMiB, true, kSecond), nullptr);
  EXPECT_STREQ(history.WhyToEnd(16 * kMiB, true, kSecond), "max_size");
  EXPECT_STREQ(history.WhyToEnd(kMiB, true, 2 * kSecond), "max_time");
  EXPECT_EQ(history.WhyToEnd(kMiB, false, 9 * kSecond), nullptr) << "no events";
}

TEST(HistoryTest, NumberOfPartsAloneMakesPartsOfAGibibyte) {
  History history({0, 0, 3}, 0);
  EXPECT_EQ(history.WhyToEnd((1u << 30) - 1, true, 1 << 30), nullptr);
  EXPECT_STREQ(history.WhyToEnd(1u << 30, true, 0), "rotate");
  for (uint64_t n = 1; n <= 5; ++n) history.BeginPart(1u << 30, kMiB, n);
  EXPECT_EQ(history.TakeDropped(9), 0u);
  EXPECT_EQ(history.TakeDropped(9), 1u);
  EXPECT_EQ(history.TakeDropped(9), 2u);
  EXPECT_EQ(history.TakeDropped(9), std::nullopt);
  EXPECT_EQ(history.newest(), 5u);
}

TEST(HistoryTest, PartIsDroppedWhenItsOldestEventIsTooOld) {
  History history({0, 80 * kSecond, 8}, 0);
  history.BeginPart(kMiB, 10, 10 * kSecond);
  history.BeginPart(kMiB, 10, 20 * kSecond);
  EXPECT_EQ(history.TakeDropped(80 * kSecond), std::nullopt);
  EXPECT_EQ(history.TakeDropped(81 * kSecond), 0u);
  EXPECT_EQ(history.TakeDropped(81 * kSecond), std::nullopt);
}

TEST(HistoryTest, TakeOldestDropsTheOldestPartFirst) {
  History history({1 << 30, 0, 0}, 0);
  EXPECT_EQ(history.TakeOldest(), std::nullopt);
  history.BeginPart(kMiB, 10, 1);
  history.BeginPart(kMiB, 10, 2);
  EXPECT_EQ(history.TakeOldest(), 0u);
  EXPECT_EQ(history.older_bytes(), kMiB);
}

// The parts on disk never exceed the limit for any base, and some history is kept.
TEST(HistoryTest, NeverExceedsItsBytesForAnyBase) {
  ForEachSeed(SeedsUpTo(300), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    const uint64_t limit = (16 + random() % 2000) * kMiB;
    const auto parts = static_cast<uint32_t>(2 + random() % 30);
    const uint64_t base = random() % (limit / 6 - kMiB);
    History history({limit, 0, parts}, 0);
    std::deque<uint64_t> older;
    uint64_t newest = 0, most = 0;
    for (int step = 0; step < 200; ++step) {
      newest += random() % (kMiB / 2);
      newest += (history.part_bytes() > newest ? history.part_bytes() - newest : 0) / 2;
      uint64_t total = newest;
      for (uint64_t bytes : older) total += bytes;
      most = std::max(most, total);
      ASSERT_LE(total, limit);
      if (history.WhyToEnd(newest, true, 0) == nullptr) continue;
      ASSERT_LE(total + base, limit) << "while both are on disk";
      older.push_back(newest);
      history.BeginPart(newest, base, 0);
      newest = base;
      while (history.TakeDropped(0)) older.pop_front();
      ASSERT_FALSE(older.empty());
    }
    EXPECT_GE(most, limit / 3);
  });
}

}  // namespace
}  // namespace gmt::collector
