#include "viewer/server/lifetime.h"

#include <gtest/gtest.h>

namespace gmt::viewer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Lifetime::Clock::time_point kStart{};

TEST(LifetimeTest, NeverOverBeforeAPageWasOpen) {
  Lifetime life(seconds(5));
  life.PagesOpen(0, kStart);
  EXPECT_FALSE(life.IsOver(kStart + hours(1000)));
}

TEST(LifetimeTest, OverSomeSecondsAfterTheLastPageWasClosed) {
  Lifetime life(seconds(5));
  life.PagesOpen(2, kStart);
  life.PagesOpen(1, kStart + seconds(1));
  EXPECT_FALSE(life.IsOver(kStart + hours(1000)));
  life.PagesOpen(0, kStart + seconds(10));
  EXPECT_FALSE(life.IsOver(kStart + seconds(15) - milliseconds(1)));
  EXPECT_TRUE(life.IsOver(kStart + seconds(15)));
}

TEST(LifetimeTest, ReloadedPageKeepsItAlive) {
  Lifetime life(seconds(5));
  life.PagesOpen(1, kStart);
  life.PagesOpen(0, kStart + seconds(1));
  life.PagesOpen(1, kStart + seconds(2));
  EXPECT_FALSE(life.IsOver(kStart + hours(1)));
}

TEST(LifetimeTest, NeverOverWithoutAGracePeriod) {
  Lifetime life(std::nullopt);
  life.PagesOpen(1, kStart);
  life.PagesOpen(0, kStart);
  EXPECT_FALSE(life.IsOver(kStart + hours(1000)));
}

}  // namespace
}  // namespace gmt::viewer
