#include "cli/query/sql_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmt::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> Next(std::string_view text) {
  return CompleteSql(text, {"human", "sum"}).words;
}

TEST(SqlCompletionTest, KeywordsContinueInTheCaseThatWasTyped) {
  EXPECT_THAT(Next("SELE"), ElementsAre("SELECT"));
  EXPECT_THAT(Next("sele"), ElementsAre("select"));
  EXPECT_EQ(CompleteSql("SELECT sele", {}).typed, 4u);
}

TEST(SqlCompletionTest, TablesComeAfterFromAndJoin) {
  EXPECT_THAT(Next("SELECT bytes FROM me"), ElementsAre("memory"));
  EXPECT_THAT(Next("SELECT 1 FROM memory JOIN "), IsSupersetOf({"blocks", "stacks"}));
  EXPECT_THAT(Next("SELECT 1 FROM memory JOIN "), Not(Contains("SELECT")));
}

TEST(SqlCompletionTest, FunctionsEndWithAParenthesis) {
  EXPECT_THAT(Next("SELECT hum"), ElementsAre("human("));
  EXPECT_THAT(Next("SELECT su"), ElementsAre("sum("));
}

TEST(SqlCompletionTest, ColumnsAreThoseOfTheTablesInTheStatement) {
  EXPECT_THAT(Next("SELECT holds_"), ElementsAre("holds_blocks"));
  EXPECT_THAT(Next("SELECT 1 FROM blocks\nWHERE holds_"), ElementsAre("holds_blocks"));
  EXPECT_THAT(Next("SELECT 1 FROM marks WHERE holds_"), IsEmpty());
}

TEST(SqlCompletionTest, ColumnsAfterADotAreThoseOfTheTableOrAlias) {
  EXPECT_THAT(Next("SELECT 1 FROM memory m JOIN marks AS k ON k.n"), ElementsAre("name", "number"));
  EXPECT_THAT(Next("SELECT 1 FROM memory JOIN marks ON memory.addr"), ElementsAre("address"));
  EXPECT_THAT(Next("SELECT 1 FROM memory m JOIN marks ON m.number"), IsEmpty());
}

TEST(SqlCompletionTest, NothingIsCompletedInTextAndComments) {
  EXPECT_THAT(Next("SELECT 'sele"), IsEmpty());
  EXPECT_THAT(Next("SELECT \"me"), IsEmpty());
  EXPECT_THAT(Next("SELECT 1 -- sele"), IsEmpty());
  EXPECT_THAT(Next("SELECT 1 -- it's\n, 'a' FROM me"), ElementsAre("memory"));
}

TEST(SqlCompletionTest, CommandsAndTheirWords) {
  EXPECT_THAT(Next(".s"), ElementsAre(".schema"));
  EXPECT_THAT(Next(".schema ma"), ElementsAre("marks"));
  EXPECT_THAT(Next(".mode "), ElementsAre("box", "csv", "json", "table"));
  EXPECT_THAT(Next(".tables m"), IsEmpty());
}

}  // namespace
}  // namespace gmt::cli
