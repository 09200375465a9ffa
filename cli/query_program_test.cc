// Runs `gpumemtrace query` with its options for the output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class QueryProgramTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    std::string log;
    for (int n = 1; n <= 1200; ++n) {
      log += R"({"kind":"alloc","t_ns":)" + std::to_string(n) +
             R"(,"heap":"driver","device":0,"address":)" + std::to_string(n * 4096) +
             R"(,"size":512})" + "\n";
    }
    Put("log.jsonl", log);
  }
  // Returns the number of rows after a query that prints one line for each of them and a heading.
  long Rows() const { return std::count(out_.begin(), out_.end(), '\n') - 1; }
};

TEST_F(QueryProgramTest, TableHasAThousandRowsUnlessMoreAreWanted) {
  const std::string query = "query log.jsonl 'SELECT t_ns FROM events'";
  ASSERT_EQ(Run(query), 0) << err_;
  EXPECT_EQ(Rows(), 1000);
  EXPECT_THAT(err_, HasSubstr("only the first 1000 rows are shown; --max-rows 0 shows all"));
  ASSERT_EQ(Run(query + " --max-rows 0"), 0) << err_;
  EXPECT_EQ(Rows(), 1200);
  EXPECT_EQ(err_, "");
  ASSERT_EQ(Run(query + " --csv"), 0) << err_;
  EXPECT_EQ(Rows(), 1200);
}

TEST_F(QueryProgramTest, MaxRowsLimitsEveryKindOfOutput) {
  const std::string query = "query log.jsonl 'SELECT t_ns FROM events' --max-rows 2";
  for (const char* kind : {"", " --csv"}) {
    ASSERT_EQ(Run(query + kind), 0) << err_;
    EXPECT_EQ(Rows(), 2) << kind;
    EXPECT_THAT(err_, HasSubstr("only the first 2 rows"));
  }
  EXPECT_EQ(RunJson(query + " --json")["rows"].size(), 2u);
}

TEST_F(QueryProgramTest, SchemaListsTablesAndColumnsWithoutAQuery) {
  ASSERT_EQ(Run("query log.jsonl --schema"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("memory: every piece of memory that was held"));
  EXPECT_THAT(out_, HasSubstr("alloc_ns"));
  ASSERT_EQ(Run("query --schema"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("events:"));
  EXPECT_THAT(out_, Not(HasSubstr("log.jsonl")));
}

}  // namespace
}  // namespace gmt::cli
