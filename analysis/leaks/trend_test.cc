#include "analysis/leaks/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gmt::analysis {
namespace {

TEST(TrendTest, SlopeOfAStraightLineIsExactAndCertain) {
  const Trend trend = TheilSen({5, 8, 11, 14, 17, 20});
  EXPECT_DOUBLE_EQ(trend.slope, 3);
  EXPECT_DOUBLE_EQ(trend.low, 3);
  EXPECT_DOUBLE_EQ(trend.high, 3);
}

TEST(TrendTest, OutliersDoNotMoveTheSlope) {
  EXPECT_DOUBLE_EQ(TheilSen({0, 1, 2, 900, 4, 5, 6, -900, 8, 9, 10}).slope, 1);
}

TEST(TrendTest, IntervalHoldsTheSlopeNineteenTimesOfTwenty) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 10);
  int held = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<double> series;
    for (int i = 0; i < 30; ++i) series.push_back(0.7 * i + noise(random));
    const Trend trend = TheilSen(series);
    held += trend.low <= 0.7 && 0.7 <= trend.high ? 1 : 0;
  }
  EXPECT_NEAR(held, 380, 12);
}

TEST(TrendTest, MeanAndItsInterval) {
  const Trend trend = MeanOf({1, 2, 3});
  EXPECT_DOUBLE_EQ(trend.slope, 2);
  EXPECT_NEAR(trend.high, 2 + 4.303 / std::sqrt(3.0), 0.2);  // Student's t, 2 degrees of freedom
  EXPECT_DOUBLE_EQ(MeanOf({7}).low, 7);
  EXPECT_DOUBLE_EQ(MeanOf({}).slope, 0);
}

TEST(TrendTest, TooFewPointsHaveNoTrend) {
  EXPECT_DOUBLE_EQ(TheilSen({}).slope, 0);
  EXPECT_DOUBLE_EQ(TheilSen({4}).high, 0);
  EXPECT_DOUBLE_EQ(RateTrend({}), 0);
  EXPECT_DOUBLE_EQ(RateTrend({0, 0, 0}), 0);
}

TEST(TrendTest, FallingRateIsNegativeRisingRateIsPositive) {
  EXPECT_NEAR(RateTrend({1, 1, 1, 1, 1, 1}), 0, 1e-9);
  EXPECT_LT(RateTrend({9, 9, 7, 7, 5, 5, 3, 3, 1, 1, 0, 0}), -2);
  EXPECT_GT(RateTrend({0, 0, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9}), 2);
}

TEST(TrendTest, ManyEventsOfOneMomentCountOnce) {
  EXPECT_DOUBLE_EQ(IndependentEvents({0, 1000, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(IndependentEvents({2, 2, 2, 2}), 4);
  EXPECT_GT(RateTrend({1000, 0, 0, 0}), -2);
}

TEST(TrendTest, SilenceIsUnlikelyAfterManyEvents) {
  EXPECT_DOUBLE_EQ(ChanceOfSilence(2, 0.5), 0.25);
  EXPECT_DOUBLE_EQ(ChanceOfSilence(0, 0.9), 1);
  EXPECT_DOUBLE_EQ(ChanceOfSilence(5, 7), 0);
}

TEST(TrendTest, RisesAreCountedAndAdded) {
  const Rises rises = RisesOf({1, 4, 2, 2, 5});
  EXPECT_DOUBLE_EQ(rises.up, 6);
  EXPECT_DOUBLE_EQ(rises.down, 2);
  EXPECT_EQ(rises.rising, 2u);
  EXPECT_EQ(rises.pairs, 4u);
}

TEST(TrendTest, WholeNumbersStayInRange) {
  EXPECT_EQ(Whole(-3), 0u);
  EXPECT_EQ(Whole(2.6), 3u);
  EXPECT_EQ(Whole(std::numeric_limits<double>::infinity()), 9'000'000'000'000'000'000u);
  EXPECT_EQ(Whole(std::nan("")), 0u);
}

}  // namespace
}  // namespace gmt::analysis
