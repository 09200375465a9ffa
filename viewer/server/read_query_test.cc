#include "viewer/server/read_query.h"

#include <gmock/gmock.h>

namespace gmt::viewer {
namespace {

using testing::HasSubstr;

std::string Refusal(Parameters& parameters) { return std::string(parameters.Finish().message()); }

TEST(ReadQueryTest, ReadsAWindow) {
  Parameters parameters("lane=1&axis=step&from=-1.5&to=12.25&columns=800");
  const Window window = ReadWindow(parameters);
  EXPECT_EQ(window.lane, 1);
  EXPECT_EQ(window.axis, Axis::kStep);
  EXPECT_EQ(window.from, -1.5);
  EXPECT_EQ(window.to, 12.25);
  EXPECT_EQ(window.columns, 800);
  EXPECT_EQ(Refusal(parameters), "");
}

TEST(ReadQueryTest, EmptyWindowIsRefused) {
  for (const char* to : {"5", "4", "-1e308"}) {
    Parameters parameters(std::string("lane=0&axis=time&columns=1&from=5&to=") + to);
    ReadWindow(parameters);
    EXPECT_THAT(Refusal(parameters), HasSubstr("from: does not lie before to"));
  }
}

TEST(ReadQueryTest, ReadsABlockQuery) {
  Parameters parameters(
      "lane=0&axis=event&from=0&to=9&columns=8192&layout=address&low=1&high=2e9&rows=600");
  const BlockQuery query = ReadBlockQuery(parameters);
  EXPECT_EQ(query.layout, Layout::kAddress);
  EXPECT_EQ(query.low, 1);
  EXPECT_EQ(query.high, 2e9);
  EXPECT_EQ(query.rows, 600);
  EXPECT_EQ(Refusal(parameters), "");
}

TEST(ReadQueryTest, BlockQueryWithoutHeightIsRefused) {
  Parameters parameters(
      "lane=0&axis=event&from=0&to=9&columns=8&layout=stacked&low=2&high=2&rows=6");
  ReadBlockQuery(parameters);
  EXPECT_THAT(Refusal(parameters), HasSubstr("low: does not lie below high"));
}

TEST(ReadQueryTest, ReadsAScopeWithItsFilter) {
  Parameters parameters(
      "lane=2&of=kept&from=3&to=4&text=model.py&category=inputs&stack=7&key=4294967295&stream=0x1"
      "&thread=unknown&min_size=0&max_size=9007199254740992");
  const Scope scope = ReadScope(parameters);
  Filter filter;
  filter.text = "model.py";
  filter.category = "inputs";
  filter.stack = 7;
  filter.key = UINT32_MAX;
  filter.stream = "0x1";
  filter.thread = "unknown";
  filter.min_size = 0;
  filter.max_size = uint64_t{1} << 53;
  EXPECT_EQ(scope, (Scope{2, filter, Scope::kKept, 3, 4}));
  EXPECT_EQ(Refusal(parameters), "");
}

TEST(ReadQueryTest, MapsEveryGroupingNameToItsValue) {
  const std::vector<std::pair<std::string, TableQuery::By>> names = {
      {"stack", TableQuery::kStack},   {"function", TableQuery::kFunction},
      {"file", TableQuery::kFile},     {"category", TableQuery::kCategory},
      {"size", TableQuery::kSize},     {"stream", TableQuery::kStream},
      {"thread", TableQuery::kThread}, {"block", TableQuery::kBlock}};
  for (const auto& [name, by] : names) {
    Parameters parameters("lane=0&of=live&from=0&to=1&sort=rate&limit=500&by=" + name);
    const TableQuery query = ReadTableQuery(parameters);
    EXPECT_EQ(query.by, by) << name;
    EXPECT_EQ(query.sort, TableQuery::kRate);
    EXPECT_TRUE(query.descending);
    EXPECT_EQ(Refusal(parameters), "");
  }
}

TEST(ReadQueryTest, MapsEveryGroupingOfARangeToItsValue) {
  const std::vector<std::pair<std::string, RangeQuery::By>> names = {
      {"category", RangeQuery::kCategory}, {"role", RangeQuery::kRole},
      {"dtype", RangeQuery::kDtype},       {"module", RangeQuery::kModule},
      {"function", RangeQuery::kFunction}, {"line", RangeQuery::kLine},
      {"stack", RangeQuery::kStack},       {"thread", RangeQuery::kThread},
      {"stream", RangeQuery::kStream}};
  for (const auto& [name, by] : names) {
    Parameters parameters(
        "lane=1&from=2&to=9&folded=true&sort=byte_seconds&descending=false&limit=7&by=" + name);
    const RangeQuery query = ReadRangeQuery(parameters);
    EXPECT_TRUE(query.folded);
    EXPECT_EQ(query.by, by) << name;
    EXPECT_EQ(query.sort, RangeQuery::kByteSeconds);
    EXPECT_FALSE(query.descending);
    EXPECT_EQ(Refusal(parameters), "");
  }
}

TEST(ReadQueryTest, OtherRangeIsCompleteOrAbsent) {
  const std::string range = "lane=0&from=2&to=9&by=stack&sort=mean_bytes&limit=7";
  Parameters whole(range +
                   "&side=difference&other_from=3&other_to=5&other_box_layout=stacked"
                   "&other_box_axis=event&other_box_low=1&other_box_high=2");
  const RangeQuery query = ReadRangeQuery(whole);
  EXPECT_EQ(query.sort, RangeQuery::kMeanBytes);
  EXPECT_EQ(query.side, RangeQuery::kDifference);
  EXPECT_FALSE(query.box.has_value());
  ASSERT_TRUE(query.other.has_value());
  EXPECT_EQ(query.other->from, 3u);
  EXPECT_EQ(query.other->to, 5u);
  EXPECT_EQ(query.other->box->high, 2);
  EXPECT_EQ(Refusal(whole), "");
  Parameters none(range), half(range + "&other_to=5");
  EXPECT_FALSE(ReadRangeQuery(none).other.has_value());
  EXPECT_EQ(Refusal(none), "");
  ReadRangeQuery(half);
  EXPECT_THAT(Refusal(half), HasSubstr("other_from and other_to"));
}

TEST(ReadQueryTest, TableOfTooManyRowsIsRefused) {
  Parameters parameters("lane=0&of=live&from=0&to=1&by=stack&sort=bytes&limit=501");
  ReadTableQuery(parameters);
  EXPECT_THAT(Refusal(parameters), HasSubstr("limit: 501"));
}

TEST(ReadQueryTest, EventsAreOfKnownKinds) {
  Parameters parameters("lane=1&kinds=16383&offset=9&limit=500&event=3");
  const EventsQuery query = ReadEventsQuery(parameters);
  EXPECT_EQ(query.lane, 1u);
  EXPECT_EQ(query.kinds, kAllEventKinds);
  EXPECT_EQ(query.offset, 9u);
  EXPECT_EQ(query.event, 3u);
  EXPECT_EQ(Refusal(parameters), "");
  Parameters wrong("lane=1&kinds=16384&limit=501&event=3");
  ReadEventsQuery(wrong);
  EXPECT_THAT(Refusal(wrong), HasSubstr("kinds: 16384"));
}

TEST(ReadQueryTest, OtherSideIsCompleteOrAbsent) {
  Parameters whole("other_file=1&other_lane=0&other_to=9"), none(""), half("other_file=1"),
      far("other_file=2&other_lane=0&other_to=9");
  const auto other = ReadOtherSide(whole, 2);
  EXPECT_EQ(other->to, 9);
  EXPECT_EQ(other->window, std::nullopt);
  Parameters live("other_file=1&other_lane=0&other_to=9&other_window=3");
  EXPECT_EQ(ReadOtherSide(live, 2)->window, 3);
  EXPECT_EQ(Refusal(whole), "");
  EXPECT_EQ(ReadOtherSide(none, 2), std::nullopt);
  EXPECT_EQ(Refusal(none), "");
  EXPECT_EQ(ReadOtherSide(half, 2), std::nullopt);
  EXPECT_THAT(Refusal(half), HasSubstr("all of them or none"));
  ReadOtherSide(far, 2);
  EXPECT_THAT(Refusal(far), HasSubstr("other_file: 2"));
}

}  // namespace
}  // namespace gmt::viewer
