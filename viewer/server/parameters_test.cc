#include "viewer/server/parameters.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/seeds/seeds.h"

namespace gmt::viewer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Wrong(Parameters& parameters) { return std::string(parameters.Finish().message()); }

TEST(ParametersTest, ReadsValues) {
  Parameters parameters(
      "lane=2&from=-1.5e3&axis=event&inverted=true&text=a%20b%2Bc+d%26&ids=1,2,3&min_size=0");
  EXPECT_EQ(parameters.Integer("lane", 0, 10), 2);
  EXPECT_EQ(parameters.Number("from"), -1500);
  EXPECT_EQ(parameters.Choice("axis", {"time", "event"}), 1);
  EXPECT_TRUE(parameters.FlagOr("inverted", false));
  EXPECT_EQ(parameters.Text("text"), "a b+c d&");
  EXPECT_THAT(parameters.Integers("ids", 10, 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(parameters.OptionalInteger("min_size", 0, 10), 0);
  EXPECT_EQ(parameters.OptionalInteger("max_size", 0, 10), std::nullopt);
  EXPECT_TRUE(parameters.Finish().ok()) << parameters.Finish();
}

TEST(ParametersTest, EmptyValueCountsAsMissing) {
  Parameters parameters("text=&stack=&lane");
  EXPECT_EQ(parameters.Text("text"), "");
  EXPECT_EQ(parameters.OptionalInteger("stack", 0, 10), std::nullopt);
  EXPECT_EQ(parameters.Integer("lane", 0, 10), 0);
  EXPECT_EQ(Wrong(parameters), "lane: missing");
}

TEST(ParametersTest, ReportsTheFirstError) {
  Parameters parameters("lane=x&file=y");
  parameters.Integer("file", 0, 10);
  parameters.Integer("lane", 0, 10);
  EXPECT_THAT(Wrong(parameters), HasSubstr("file: y is not a whole number from 0 to 10"));
}

TEST(ParametersTest, UnknownParameterIsRefused) {
  Parameters parameters("colums=100&lane=1");
  parameters.Integer("lane", 0, 10);
  EXPECT_THAT(Wrong(parameters), HasSubstr("colums: this query has no such parameter"));
}

TEST(ParametersTest, ParameterGivenTwiceIsRefused) {
  Parameters parameters("lane=1&lane=2");
  parameters.Integer("lane", 0, 10);
  EXPECT_THAT(Wrong(parameters), HasSubstr("given twice"));
}

TEST(ParametersTest, TextsAreAJsonArrayOfStrings) {
  Parameters parameters("within=%5B%22a%22,%22b,c%22%5D");
  EXPECT_THAT(parameters.Texts("within"), ElementsAre("a", "b,c"));
  EXPECT_THAT(parameters.Texts("missing"), ElementsAre());
  EXPECT_TRUE(parameters.Finish().ok());
  for (const char* wrong : {"x=%5B1%5D", "x=%5B", "x=%22a%22", "x=%7B%7D"}) {
    Parameters refused(wrong);
    EXPECT_THAT(refused.Texts("x"), ElementsAre()) << wrong;
    EXPECT_FALSE(refused.Finish().ok()) << wrong;
  }
}

TEST(ParametersTest, NonIntegersAndIntegersOutOfRangeAreRefused) {
  for (const char* text : {"0", "8193", "-1", "1.5", "1e3", "+1", "%201", "0x10", "nan",
                           "18446744073709551616", "99999999999999999999999999"}) {
    Parameters parameters(std::string("columns=") + text);
    EXPECT_EQ(parameters.Integer("columns", 1, 8192), 1) << text;
    EXPECT_THAT(Wrong(parameters), HasSubstr("columns: ")) << text;
  }
}

TEST(ParametersTest, NumbersThatAreNotFiniteAreRefused) {
  for (const char* text : {"nan", "inf", "-inf", "NaN", "Infinity", "1e999", "0x1p3", "1..2", "e",
                           "-", "1 2", "1%00", "%"}) {
    Parameters parameters(std::string("from=") + text);
    EXPECT_TRUE(std::isfinite(parameters.Number("from"))) << text;
    EXPECT_NE(Wrong(parameters), "") << text;
  }
}

TEST(ParametersTest, TooLongListIsRefused) {
  Parameters parameters("ids=1,2,3,4");
  EXPECT_LE(parameters.Integers("ids", 10, 3).size(), 3);
  EXPECT_THAT(Wrong(parameters), HasSubstr("at most 3"));
}

TEST(ParametersTest, HugeTextIsNotRepeatedInTheError) {
  Parameters parameters("lane=" + std::string(10'000, 'x'));
  parameters.Integer("lane", 0, 10);
  EXPECT_LT(Wrong(parameters).size(), 200);
}

TEST(ParametersTest, RandomQueriesStayInRange) {
  ForEachSeed(SeedsUpTo(20'000), [](uint32_t seed) {
    std::mt19937 random(seed);
    const std::string alphabet = "lanefromids=&&&=%20%zz,.-+eE0123456789\xff\"\n";
    std::string query;
    for (size_t i = random() % 60; i > 0; --i)
      query.push_back(alphabet[random() % alphabet.size()]);
    if (random() % 2 == 0) query += "&lane=" + std::to_string(random());
    Parameters parameters(query);
    const uint64_t lane = parameters.Integer("lane", 3, 7);
    EXPECT_GE(lane, 3);
    EXPECT_LE(lane, 7);
    EXPECT_TRUE(std::isfinite(parameters.Number("from")));
    EXPECT_LE(parameters.Integers("ids", 5, 4).size(), 4);
    (void)parameters.Finish();
  });
}

}  // namespace
}  // namespace gmt::viewer
