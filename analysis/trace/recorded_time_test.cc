#include "analysis/trace/recorded_time.h"

#include <gtest/gtest.h>

namespace gmt::analysis {
namespace {

TEST(RecordedTimeTest, OrdinaryTimesAddUp) {
  EXPECT_EQ(Before(10, 3), 7);
  EXPECT_EQ(After(-10, 3), -7);
  EXPECT_EQ(Between(-3, 4), 7u);
}

TEST(RecordedTimeTest, HostileTimesStayWithinBounds) {
  EXPECT_EQ(Before(INT64_MIN + 1, 3), INT64_MIN);
  EXPECT_EQ(Before(5, UINT64_MAX), INT64_MIN);
  EXPECT_EQ(Before(5, uint64_t{1} << 63), INT64_MIN + 5);
  EXPECT_EQ(After(INT64_MAX - 1, 3), INT64_MAX);
  EXPECT_EQ(After(5, UINT64_MAX), INT64_MAX);
  EXPECT_EQ(Between(INT64_MIN, INT64_MAX), UINT64_MAX);
  EXPECT_EQ(Between(4, -3), 0u);
}

}  // namespace
}  // namespace gmt::analysis
