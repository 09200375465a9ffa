#include "preload/cupti/clock_pairs.h"

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kBoot = 1700000000 * kSecond;  // REALTIME at the origin of MONOTONIC

TEST(ClockPairsTest, WithoutAPairEveryTimeIsUnknown) { EXPECT_EQ(ClockPairs().ToOurs(kBoot), 0u); }

TEST(ClockPairsTest, UnknownTimesStayUnknown) {
  ClockPairs pairs;
  pairs.Add(kBoot, 0);
  EXPECT_EQ(pairs.ToOurs(0), 0u);
}

TEST(ClockPairsTest, OnePairShiftsEarlierAndLaterTimes) {
  ClockPairs pairs;
  pairs.Add(kBoot + 10 * kSecond, 10 * kSecond);
  EXPECT_EQ(pairs.ToOurs(kBoot + 7 * kSecond), 7 * kSecond);
  EXPECT_EQ(pairs.ToOurs(kBoot + 12 * kSecond), 12 * kSecond);
}

TEST(ClockPairsTest, TimesBetweenPairsFollowTheRateThere) {
  ClockPairs pairs;
  pairs.Add(kBoot, 10 * kSecond);
  pairs.Add(kBoot + kSecond, 11 * kSecond + 500000);      // slewed by 500 parts in a million
  pairs.Add(kBoot + 2 * kSecond, 12 * kSecond + 500000);  // no longer slewed
  EXPECT_NEAR(pairs.ToOurs(kBoot + kSecond / 2), 10 * kSecond + kSecond / 2 + 250000, 2);
  EXPECT_NEAR(pairs.ToOurs(kBoot + 3 * kSecond / 2), 11 * kSecond + kSecond / 2 + 500000, 2);
}

TEST(ClockPairsTest, CycleCounterIsConvertedByItsOwnRate) {
  ClockPairs pairs;
  constexpr uint64_t kCycles = 2600000000;
  pairs.Add(5 * kCycles, 100 * kSecond);
  pairs.Add(6 * kCycles, 101 * kSecond);
  EXPECT_NEAR(pairs.ToOurs(6 * kCycles + kCycles / 4), 101 * kSecond + kSecond / 4, 2);
  EXPECT_NEAR(pairs.ToOurs(4 * kCycles), 99 * kSecond, 2);
}

TEST(ClockPairsTest, TimesAfterAClockWasSetBackAreRight) {
  ClockPairs pairs;
  pairs.Add(kBoot + 10 * kSecond, 10 * kSecond);
  pairs.Add(kBoot + 5 * kSecond, 11 * kSecond);  // set back by six seconds
  EXPECT_EQ(pairs.ToOurs(kBoot + 6 * kSecond), 12 * kSecond);
}

TEST(ClockPairsTest, TimesFromBeforeAnotherClockWasRegisteredStayRight) {
  constexpr uint64_t kUnixNs = 1795000000 * kSecond, kCycles = 26000 * kSecond;
  ClockPairs pairs;
  pairs.Add(kUnixNs, 10 * kSecond);
  pairs.Add(kUnixNs + kSecond, 11 * kSecond);
  pairs.Add(kCycles, 12 * kSecond);  // the next tool's clock counts cycles
  EXPECT_EQ(pairs.ToOurs(kUnixNs + kSecond + kSecond / 2), 11 * kSecond + kSecond / 2);
  EXPECT_EQ(pairs.ToOurs(kCycles + kSecond / 2), 12 * kSecond + kSecond / 2);
}

TEST(ClockPairsTest, OnlyTheNewestPairsAreKept) {
  ClockPairs pairs;
  for (uint64_t i = 0; i < 1000; ++i) pairs.Add(kBoot + i * kSecond, i * kSecond + i);
  EXPECT_NEAR(pairs.ToOurs(kBoot + 999 * kSecond + kSecond / 2), 999 * kSecond + kSecond / 2 + 999,
              2);
}

TEST(ClockPairsTest, PairsTooCloseTogetherAreLeftOut) {
  ClockPairs pairs;
  pairs.Add(kBoot, 0);
  pairs.Add(kBoot + 500, 400);  // the reading error yields a rate of 0.8
  EXPECT_EQ(pairs.ToOurs(kBoot + kSecond), kSecond);
}

}  // namespace
}  // namespace gmt::preload
