#include "answers/diff/limit.h"

#include <gtest/gtest.h>

namespace gmt::answers {
namespace {

TEST(Limit, BytesInAllCommonUnits) {
  EXPECT_EQ(ParseLimit("1048576")->bytes, 1048576u);
  EXPECT_EQ(ParseLimit("10GiB")->bytes, uint64_t{10} << 30);
  EXPECT_EQ(ParseLimit("1.5 MiB")->bytes, 1536u * 1024);
  EXPECT_EQ(ParseLimit("2gb")->bytes, 2'000'000'000u);
}

TEST(Limit, PercentOfTheDevice) {
  const auto limit = ParseLimit("80%");
  ASSERT_TRUE(limit.ok());
  EXPECT_FALSE(limit->bytes.has_value());
  EXPECT_EQ(limit->percent, 80);
}

TEST(Limit, AnythingElseIsWrongUsage) {
  for (const char* text :
       {"", "GiB", "-1", "ten", "1.2.3", "5 parsecs", "99999999999 TiB", "5%%"}) {
    EXPECT_FALSE(ParseLimit(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gmt::answers
