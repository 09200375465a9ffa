// Compares the page's answers about recordings with the output of `report` and `diff`.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/diff/diff.h"
#include "analysis/report/report.h"
#include "analysis/trace/trace_builder.h"
#include "interop/open_input.h"
#include "viewer/questions/questions.h"

namespace gmt::viewer {
namespace {

// An opened recording with a lane for each heap on each device.
class Opened {
 public:
  explicit Opened(const std::string& name) {
    auto input = interop::OpenInput(std::string(GMT_GOLDEN) + "/" + name);
    EXPECT_TRUE(input.ok()) << input.status();
    input_ = *std::move(input);
    analysis::TraceBuilder builder(input_->definitions());
    EXPECT_TRUE(input_->Read(builder).ok());
    trace_ = std::move(builder).Build();
    examination_ = std::make_unique<analysis::Examination>(trace_, input_->definitions());
    categories_ = std::make_unique<analysis::Categories>(Categorize(*examination_));
    for (const auto& [key, totals] : examination_->replay().heaps()) {
      lanes_.push_back({key.first, key.second});
    }
    questions_ = std::make_unique<Questions>(*examination_, lanes_);
    questions_->SetCategories(categories_.get());
  }

  uint32_t LaneOf(int32_t device, const std::string& heap) const {
    for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lanes_[lane].device == device && trace_.heaps[lanes_[lane].heap] == heap) return lane;
    }
    return UINT32_MAX;
  }
  const analysis::Trace& trace() const { return trace_; }
  const std::vector<Questions::Lane>& lanes() const { return lanes_; }
  const analysis::Examination& examination() const { return *examination_; }
  const analysis::Categories& categories() const { return *categories_; }
  Questions& questions() { return *questions_; }

 private:
  std::unique_ptr<interop::Input> input_;
  analysis::Trace trace_;
  std::unique_ptr<analysis::Examination> examination_;
  std::unique_ptr<analysis::Categories> categories_;
  std::vector<Questions::Lane> lanes_;
  std::unique_ptr<Questions> questions_;
};

std::map<std::string, uint64_t> TableOf(Opened& opened, TableQuery::By by, uint32_t lane,
                                        uint32_t event) {
  TableQuery query;
  query.by = by;
  query.scope.lane = lane;
  query.scope.to = event;
  query.limit = kMaxTableRows;
  const auto table = opened.questions().AnswerTable(query);
  EXPECT_TRUE(table.ok()) << table.status();
  EXPECT_LE(table->total_rows, kMaxTableRows);
  std::map<std::string, uint64_t> rows;
  for (const TableRow& row : table->rows) {
    rows[by == TableQuery::kStack ? row.id : row.name] += static_cast<uint64_t>(row.bytes);
  }
  return rows;
}

class GoldenTest : public ::testing::TestWithParam<const char*> {};

// A report that selects a heap shows all of its memory, like the table.
TEST_P(GoldenTest, TableMatchesTheReport) {
  Opened opened(GetParam());
  size_t compared = 0;
  for (const Questions::Lane& lane : opened.lanes()) {
    const std::string heap = opened.trace().heaps[lane.heap];
    if (lane.device == analysis::kHostDevice) continue;
    for (const auto& [by, report_by] : std::vector<std::pair<TableQuery::By, analysis::GroupBy>>{
             {TableQuery::kStack, analysis::GroupBy::kStack},
             {TableQuery::kFunction, analysis::GroupBy::kFunction},
             {TableQuery::kCategory, analysis::GroupBy::kCategory}}) {
      analysis::ReportOptions options;
      options.heap = heap;
      options.device = lane.device;
      options.by = report_by;
      const auto report = MakeReport(opened.examination(), opened.categories(), options);
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_EQ(report->devices.size(), 1u);
      std::map<std::string, uint64_t> expected;
      uint64_t total = 0;
      for (const analysis::ReportRow& row : report->rows) {
        std::string name = by == TableQuery::kStack ? row.id.substr(0, row.id.find('+'))
                                                    : row.id.substr(row.id.find('/') + 1);
        if (row.unknown && by == TableQuery::kStack) name = "stack/0";
        if (row.unknown && by == TableQuery::kFunction) name = "unknown";
        expected[name] += row.bytes;
        total += row.bytes;
      }
      const uint32_t event = report->devices[0].at.step;
      const auto found = TableOf(opened, by, opened.LaneOf(lane.device, heap), event);
      uint64_t sum = 0;
      for (const auto& [name, bytes] : found) sum += bytes;
      EXPECT_EQ(sum, total) << heap << " by " << int{by};
      EXPECT_EQ(found, expected) << heap << " by " << int{by};
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Recordings, GoldenTest,
                         ::testing::Values("torch-1.13.pickle", "torch-2.0.pickle",
                                           "torch-2.11.pickle", "answers/diff_new.jsonl",
                                           "answers/leaks-leak.jsonl"));

// If all allocations are blocks, the columns of a comparison are those of the lane.
TEST(GoldenDiffTest, DifferentialFlameGraphMatchesTheTotalsOfTheDiff) {
  Opened base("answers/diff_base.jsonl"), changed("answers/diff_new.jsonl");
  const auto comparison = analysis::Compare(base.examination(), base.categories(),
                                            changed.examination(), changed.categories(), {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  ASSERT_FALSE(comparison->devices.empty());
  const analysis::Diff& diff = comparison->devices[0];
  FlameQuery query;
  query.scope.lane = changed.LaneOf(diff.device, "pytorch");
  query.scope.to = diff.new_at.step;
  const auto flame = changed.questions().AnswerFlame(
      query, base.questions(), base.LaneOf(diff.base_device, "pytorch"), diff.base_at.step);
  ASSERT_TRUE(flame.ok()) << flame.status();
  EXPECT_EQ(flame->bytes[0], static_cast<double>(diff.new_bytes));
  EXPECT_EQ(flame->before[0], static_cast<double>(diff.base_bytes));
  double bytes = 0, before = 0;
  for (size_t i = 1; i < flame->parent.size(); ++i) {
    if (flame->parent[i] != 0) continue;
    bytes += flame->bytes[i];
    before += flame->before[i];
  }
  EXPECT_EQ(bytes, flame->bytes[0]);
  EXPECT_EQ(before, flame->before[0]);
}

// Stacks have other ids in the other recording.
TEST(GoldenDiffTest, DifferenceOfOneStackIsThatOfTheSameCallsInTheOtherRecording) {
  Opened base("answers/diff_base.jsonl"), changed("answers/diff_new.jsonl");
  const uint32_t lane = changed.LaneOf(0, "pytorch"), base_lane = base.LaneOf(0, "pytorch");
  const uint32_t to = 200;
  size_t in_both = 0;
  for (const auto& [id, bytes] : TableOf(changed, TableQuery::kStack, lane, to)) {
    FlameQuery query;
    query.scope.lane = lane;
    query.scope.to = to;
    query.scope.filter.stack = static_cast<uint32_t>(std::stoul(id.substr(6)));
    const auto flame = changed.questions().AnswerFlame(query, base.questions(), base_lane, to);
    ASSERT_TRUE(flame.ok()) << flame.status();
    EXPECT_EQ(flame->bytes[0], static_cast<double>(bytes));
    // Both sides have one path, the same one.
    for (size_t i = 1; i < flame->parent.size(); ++i) {
      EXPECT_EQ(flame->parent[i], i - 1);
      EXPECT_EQ(flame->before[i], flame->before[0]);
    }
    in_both += flame->before[0] > 0;
  }
  EXPECT_GT(in_both, 1u);
}

}  // namespace
}  // namespace gmt::viewer
