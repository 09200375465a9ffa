#include "viewer/questions/row_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RowFilterTest : public ::testing::Test {
 protected:
  RowFilterTest() {
    auto& named = script_.Alloc(0x7f0000, 0x100, {"forward", "main"});
    named.name = script_.builder().InternString("weights of layer 1");
    auto& other = script_.Alloc(0x9f0000, 0x200, {"step", "main"});
    other.present |= format::kHasStream | format::kHasThread;
    other.stream = 0x7f;
    other.thread = 11;
    script_.Alloc(0xaf0000, 0x300);
    trace_ = script_.Build();
  }

  std::vector<uint32_t> Matching(const Filter& filter) {
    analysis::Examination examination(trace_, script_.definitions());
    Recording recording(examination, {{0, 0}});
    auto made = RowFilter::Make(recording, filter);
    EXPECT_TRUE(made.ok()) << made.status();
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < trace_.rows.count() && made.ok(); ++row) {
      if (made->Matches(row)) rows.push_back(row);
    }
    return rows;
  }
  std::vector<uint32_t> WithText(const std::string& text) {
    Filter filter;
    filter.text = text;
    return Matching(filter);
  }
  std::string ErrorOf(const Filter& filter) {
    analysis::Examination examination(trace_, script_.definitions());
    Recording recording(examination, {{0, 0}});
    return std::string(RowFilter::Make(recording, filter).status().message());
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
};

TEST_F(RowFilterTest, EmptyFilterMatchesEverything) {
  EXPECT_THAT(Matching({}), ElementsAre(0, 1, 2));
}

TEST_F(RowFilterTest, SearchesFunctionsFilesAndLinesIgnoringCase) {
  EXPECT_THAT(WithText("FORW"), ElementsAre(0));
  EXPECT_THAT(WithText("/src/step.py"), ElementsAre(1));
  EXPECT_THAT(WithText("main.py:10"), ElementsAre(0, 1));
  EXPECT_THAT(WithText("main (main.py)"), ElementsAre(0, 1));
  EXPECT_THAT(WithText("backward"), IsEmpty());
}

TEST_F(RowFilterTest, SearchesNames) { EXPECT_THAT(WithText("layer 1"), ElementsAre(0)); }

TEST_F(RowFilterTest, SearchesTensorsAndWhyTheyWereAlive) {
  script_.Tensor(script_.Block(0x7f0000, 0x80), "bfloat16", "[8, 128]");
  script_.Block(0x7f0080, 0x80);
  script_.Role(0x7f0080, format::kRoleSaved, "MulBackward0");
  trace_ = script_.Build();
  EXPECT_THAT(WithText("BFLOAT16 [8"), ElementsAre(3));

  analysis::Examination examination(trace_, script_.definitions());
  const analysis::Categories categories = analysis::Categorize(examination);
  Recording recording(examination, {{0, 0}});
  recording.categories = &categories;
  Filter filter;
  filter.text = "saved for backward";
  auto made = RowFilter::Make(recording, filter);
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->is_by_kind());
  EXPECT_FALSE(made->Matches(3));
  EXPECT_TRUE(made->Matches(4));
}

TEST_F(RowFilterTest, AddressFindsTheBlockThatContainsIt) {
  EXPECT_THAT(WithText("0x9f01ff"), ElementsAre(1));
  EXPECT_THAT(WithText("0x9f0200"), IsEmpty());
  EXPECT_THAT(WithText("0x7f"), ElementsAre(0));
  EXPECT_THAT(WithText("9f0000"), IsEmpty());
}

TEST_F(RowFilterTest, TextBetweenSlashesIsAnExpression) {
  EXPECT_THAT(WithText("/^(forward|step)$/"), ElementsAre(0, 1));
  EXPECT_THAT(WithText("/^FORWARD$/"), IsEmpty());
  EXPECT_THAT(WithText("/0x[79]f0000/"), ElementsAre(0, 1));
  Filter filter;
  filter.text = "/(/";
  EXPECT_THAT(ErrorOf(filter), HasSubstr("no regular expression"));
}

TEST_F(RowFilterTest, HostileExpressionIsRefusedOrFast) {
  script_.Alloc(0xbf0000, 0x300, {std::string(50'000, 'a')});
  trace_ = script_.Build();
  EXPECT_THAT(WithText("/(a*)*(a*)*(a*)*b/"), IsEmpty());
  Filter filter;
  filter.text = "/((((a{100}){100}){100}){100})/";
  EXPECT_THAT(ErrorOf(filter), HasSubstr("no regular expression"));
  filter.text = std::string(2000, 'a');
  EXPECT_THAT(ErrorOf(filter), HasSubstr("longer than 1000"));
}

TEST_F(RowFilterTest, UnknownStreamsAndThreadsCanBeQueried) {
  Filter filter;
  filter.stream = "0x7f";
  EXPECT_THAT(Matching(filter), ElementsAre(1));
  filter.stream = "unknown";
  EXPECT_THAT(Matching(filter), ElementsAre(0, 2));
  filter = {};
  filter.thread = "11";
  EXPECT_THAT(Matching(filter), ElementsAre(1));
  filter.thread = "eleven";
  EXPECT_THAT(ErrorOf(filter), HasSubstr("'eleven' is no thread"));
  filter = {};
  filter.category = "moon";
  EXPECT_THAT(ErrorOf(filter), HasSubstr("'moon' is no category"));
}

TEST_F(RowFilterTest, AllPartsMustMatch) {
  Filter filter;
  filter.text = "main";
  filter.min_size = 0x101;
  EXPECT_THAT(Matching(filter), ElementsAre(1));
  filter.max_size = 0x1ff;
  EXPECT_THAT(Matching(filter), IsEmpty());
  filter = {};
  filter.stack = trace_.rows.stack[0];
  filter.text = "step";
  EXPECT_THAT(Matching(filter), IsEmpty());
}

}  // namespace
}  // namespace gmt::viewer
