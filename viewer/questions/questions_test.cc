#include "viewer/questions/questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "viewer/questions/frame_table.h"
#include "viewer/questions/questions_json.h"

namespace gmt::viewer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::SizeIs;
using Json = nlohmann::ordered_json;

class QuestionsTest : public ::testing::Test {
 protected:
  // Lane 0: PyTorch's blocks, if there are any; lane 1: the driver's memory.
  Questions& Ask() {
    trace_ = script_.Build();
    examination_.emplace(trace_, script_.definitions());
    const auto heaps = static_cast<uint32_t>(trace_.heaps.size());
    questions_.emplace(*examination_,
                       std::vector<Questions::Lane>{{0, heaps - 1}, {0, analysis::kDriverHeap}});
    return *questions_;
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
  std::optional<analysis::Examination> examination_;
  std::optional<Questions> questions_;
};

TEST_F(QuestionsTest, PassingCurveAppliesTheLaneAndTheFilter) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});                 // event 1
  script_.Block(0x10000000, kMiB, {"forward", "main"});              // event 2
  script_.Block(0x10000000 + kMiB, 2 * kMiB, {"backward", "main"});  // event 3
  script_.FreeBlock(0x10000000);                                     // event 4
  Questions& questions = Ask();
  const ColumnPeaks columns = {{0, 2, 3, 3, 4}, {true, true, true, true, false}};
  const auto bytes = [&](uint32_t lane, const std::string& text) {
    Filter filter;
    filter.text = text;
    return questions.AnswerPassing(lane, filter, columns)->live;
  };
  const auto mib = [](double count) { return count * kMiB; };
  EXPECT_THAT(bytes(0, ""), ElementsAre(0, mib(1), mib(3), mib(3), IsNan()));
  EXPECT_THAT(bytes(0, "forward"), ElementsAre(0, mib(1), mib(1), mib(1), IsNan()));
  EXPECT_THAT(bytes(1, "segment"), ElementsAre(0, mib(20), mib(20), mib(20), IsNan()));
}

TEST_F(QuestionsTest, PassingCurveRefusesAnInvalidLaneEventOrExpression) {
  script_.Alloc(0x1000, 512);
  Questions& questions = Ask();
  const ColumnPeaks columns = {{0, 1}, {true, true}};
  EXPECT_THAT(questions.AnswerPassing(2, {}, columns).status().message(), HasSubstr("no lane 2"));
  EXPECT_THAT(questions.AnswerPassing(1, {}, {{0, 2}, {true, true}}).status().message(),
              HasSubstr("no event 2"));
  Filter filter;
  filter.text = "/(/";
  EXPECT_THAT(questions.AnswerPassing(1, filter, columns).status().message(),
              HasSubstr("no regular expression"));
}

TEST_F(QuestionsTest, LargestSitesAreThoseThatHoldMostAfterTheEvent) {
  script_.Alloc(0x10000000, 64 * kMiB, {"segment"});  // event 1
  uint64_t address = 0x10000000;
  const auto block = [&](uint64_t size, const std::string& function) {
    script_.Block(address, size, {function, "main"});
    address += 4 * kMiB;
  };
  block(3 * kMiB, "freed");  // event 2
  block(kMiB, "twice");
  block(kMiB, "twice");
  block(2 * kMiB + kMiB / 2, "largest");
  script_.FreeBlock(0x10000000);  // event 6
  for (int i = 0; i < 12; ++i) block(1024, "small" + std::to_string(i));
  Questions& questions = Ask();
  const auto key = [&](size_t event) {
    FrameTable frames(*examination_);
    return frames.Key(trace_.rows.stack[trace_.steps[event - 1].row]);
  };
  EXPECT_THAT(questions.LargestSites(0, 5), ElementsAre(key(2), key(5), key(3)));
  EXPECT_THAT(questions.LargestSites(0, 6), ElementsAre(key(5), key(3)));
  EXPECT_THAT(questions.LargestSites(1, 6), ElementsAre(key(1)));
  EXPECT_THAT(questions.LargestSites(0, trace_.last_step()), SizeIs(Questions::kMaxSites));
}

TEST_F(QuestionsTest, BlockHasItsPlaceAndItsNeighbours) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000, kMiB, {"first"});
  auto& block = script_.Block(0x10000000 + kMiB, 2 * kMiB, {"second", "main"});
  block.present |= format::kHasRequested;
  block.requested = 2 * kMiB - 100;
  block.forward_stack = script_.Stack({"model"});
  script_.FreeBlock(0x10000000 + kMiB);
  const auto details = Ask().AnswerBlock(2);
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_EQ(details->lane, 0u);
  EXPECT_EQ(details->requested, 2 * kMiB - 100);
  EXPECT_EQ(details->birth, 3u);
  EXPECT_EQ(details->death, 4u);
  ASSERT_TRUE(details->segment);
  EXPECT_EQ(details->segment->offset, kMiB);
  ASSERT_TRUE(details->before && details->after);
  EXPECT_EQ(details->before->row, 1u);
  EXPECT_EQ(details->before->label, "first (first.py:10)");
  EXPECT_EQ(details->after->row, kNoRow);
  EXPECT_EQ(details->after->size, 17 * kMiB);
  ASSERT_TRUE(details->forward_stack);
  EXPECT_EQ(details->forward_stack->frames[0].function, "model");
  EXPECT_EQ(details->same_stack.blocks, 1u);
  EXPECT_EQ(details->same_stack.live_bytes, 2 * kMiB);
  EXPECT_EQ(details->same_stack.peak_bytes, 2 * kMiB);
  EXPECT_THAT(details->stack.frames, SizeIs(2));
}

TEST_F(QuestionsTest, HistoryOfStacksIsKnownInEveryLane) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000, kMiB, {"same"});
  script_.Block(0x10000000 + kMiB, kMiB, {"same"});
  script_.FreeBlock(0x10000000);
  script_.Alloc(0x30000000, 3 * kMiB, {"same"});
  Questions& questions = Ask();
  questions.Prepare();
  const auto block = questions.AnswerBlock(2), driver = questions.AnswerBlock(3);
  ASSERT_TRUE(block.ok() && driver.ok());
  EXPECT_EQ(block->same_stack.blocks, 2u);
  EXPECT_EQ(block->same_stack.peak_bytes, 2 * kMiB);
  // The driver's memory with the same stack belongs to another lane.
  EXPECT_EQ(driver->same_stack.blocks, 1u);
  EXPECT_EQ(driver->same_stack.peak_bytes, 3 * kMiB);
}

TEST_F(QuestionsTest, ResultsAreRecomputedWhenCategoriesBecomeKnown) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000, kMiB, {"forward"});
  Questions& questions = Ask();
  TableQuery by_category;
  by_category.by = TableQuery::kCategory;
  by_category.limit = 10;
  by_category.scope.to = 2;
  TableQuery of_workspaces;
  of_workspaces.limit = 10;
  of_workspaces.scope.to = 2;
  of_workspaces.scope.filter.category = "workspaces";
  EXPECT_EQ(questions.AnswerTable(by_category)->rows.at(0).name, "unknown");
  EXPECT_THAT(questions.AnswerTable(of_workspaces)->rows, SizeIs(0));
  const analysis::Categories categories(std::vector<analysis::Categories::Assignment>(
                                            trace_.rows.count(), {analysis::Category::kWorkspaces}),
                                        {"a test says so"});
  questions.SetCategories(&categories);
  EXPECT_EQ(questions.AnswerTable(by_category)->rows.at(0).name, "workspaces");
  const auto table = questions.AnswerTable(of_workspaces);
  ASSERT_THAT(table->rows, SizeIs(1));
  EXPECT_EQ(table->rows[0].peak_bytes, kMiB);
}

TEST_F(QuestionsTest, ErrorsNameWhatDoesNotExist) {
  script_.Alloc(0x1000, 64);
  Questions& questions = Ask();
  EXPECT_EQ(questions.AnswerBlock(1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(questions.AnswerSegments(9, 0).status().message()),
              HasSubstr("there is no lane 9"));
  EXPECT_THAT(std::string(questions.AnswerSegments(0, 2).status().message()),
              HasSubstr("there is no event 2"));
  TableQuery query;
  query.limit = 501;
  EXPECT_EQ(questions.AnswerTable(query).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(questions.AnswerFind({}, 77, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QuestionsTest, SegmentsDescribeTheEventAndTheLayout) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000 + kMiB, 12 * kMiB, {"train"});
  Questions& questions = Ask();
  const auto segments = questions.AnswerSegments(0, 2);
  ASSERT_TRUE(segments.ok()) << segments.status();
  EXPECT_EQ(segments->what, "alloc 12.0 MiB at 0x10100000 (train.py:10)");
  EXPECT_EQ(segments->live_bytes, 12 * kMiB);
  EXPECT_EQ(segments->reserved_bytes, 20 * kMiB);
  EXPECT_EQ(segments->largest_hole, 7 * kMiB);
  ASSERT_THAT(segments->segments, SizeIs(1));
  EXPECT_THAT(segments->segments[0].offset, ElementsAre(kMiB));
  EXPECT_EQ(questions.AnswerSegments(0, 0)->what, "before the first event");
}

TEST_F(QuestionsTest, EachAllocationOfALaneWithoutSegmentsIsASegment) {
  script_.Alloc(0x1000, 64);
  script_.Alloc(0x2000, 128);
  const auto segments = Ask().AnswerSegments(1, 2);
  ASSERT_TRUE(segments.ok()) << segments.status();
  EXPECT_THAT(segments->segments, SizeIs(2));
  EXPECT_EQ(segments->live_bytes, 192u);
  EXPECT_EQ(segments->reserved_bytes, 192u);
}

TEST_F(QuestionsTest, OverlappingBlocksOfADamagedRecordingStillAddUp) {
  script_.Alloc(0x10000000, 2 * kMiB);
  script_.Block(0x10000000, kMiB);
  script_.Block(0x10000100, kMiB);
  script_.Block(UINT64_MAX - 10, uint64_t{1} << 62);
  const auto segments = Ask().AnswerSegments(0, 4);
  ASSERT_TRUE(segments.ok()) << segments.status();
  uint64_t sum = 0;
  for (const SegmentState& segment : segments->segments) {
    for (const uint64_t bytes : segment.bytes) sum += bytes;
  }
  EXPECT_EQ(sum, 2 * kMiB + (uint64_t{1} << 62));
  EXPECT_EQ(sum, segments->live_bytes);
}

TEST_F(QuestionsTest, FoldedFlameGraphKeepsTheCalledFunction) {
  const auto frame = [&](const std::string& function) {
    format::FrameInfo info;
    info.function = script_.builder().InternString(function);
    return script_.builder().InternFrame(info);
  };
  auto& event = script_.Alloc(0x1000, 64);
  event.stack = script_.builder().InternStack({frame("cudaMalloc"), frame("at::native::linear"),
                                               frame("_PyEval_EvalFrameDefault"), frame("main")},
                                              0);
  FlameQuery query;
  query.scope.lane = 1;
  query.scope.to = 1;
  Questions& questions = Ask();
  const auto names = [&](const FlameTree& tree) {
    std::vector<std::string> found;
    for (const uint32_t name : tree.name) {
      found.push_back(tree.names[name].substr(0, tree.names[name].find('\t')));
    }
    return found;
  };
  EXPECT_THAT(
      names(*questions.AnswerFlame(query)),
      ElementsAre("all", "main", "_PyEval_EvalFrameDefault", "at::native::linear", "cudaMalloc"));
  query.folded = true;
  EXPECT_THAT(names(*questions.AnswerFlame(query)),
              ElementsAre("all", "main", "at::native::linear"));
  query.inverted = true;
  EXPECT_THAT(names(*questions.AnswerFlame(query)),
              ElementsAre("all", "at::native::linear", "main"));
}

TEST_F(QuestionsTest, BackwardPassIsBelowTheCallsOfTheForwardPass) {
  script_.Alloc(0x1000, 64, {"linear", "main"});
  script_.Alloc(0x2000, 32, {"MmBackward0"}).forward_stack = script_.Stack({"linear", "main"});
  FlameQuery query;
  query.scope.lane = 1;
  query.scope.to = 2;
  Questions& questions = Ask();
  const auto flame = questions.AnswerFlame(query);
  ASSERT_TRUE(flame.ok()) << flame.status();
  std::vector<std::string> nodes;
  for (size_t i = 0; i < flame->name.size(); ++i) {
    const std::string& name = flame->names[flame->name[i]];
    nodes.push_back(
        absl::StrCat(flame->parent[i], " ", name.substr(0, name.find('\t')), " ", flame->bytes[i]));
  }
  EXPECT_THAT(nodes, ElementsAre("0 all 96", "0 main 96", "1 linear 96", "2 backward pass 32",
                                 "3 MmBackward0 32"));
  query.scope.filter.text = "linear";
  EXPECT_EQ(questions.AnswerFlame(query)->total, 96);
}

TEST_F(QuestionsTest, AFrameHasTheCategoryOfMostOfItsBytes) {
  script_.Alloc(0x1000, 64, {"a", "main"});
  script_.Alloc(0x2000, 128, {"b", "main"});
  script_.Alloc(0x3000, 96, {"b", "main"});
  Questions& questions = Ask();
  FlameQuery query;
  query.scope.lane = 1;
  query.scope.to = 3;
  EXPECT_THAT(questions.AnswerFlame(query)->category, Each(int{0}));
  using analysis::Category;
  const analysis::Categories categories(
      {{Category::kInputs}, {Category::kGradients}, {Category::kInputs}}, {"a test says so"});
  questions.SetCategories(&categories);
  const auto flame = questions.AnswerFlame(query);
  ASSERT_TRUE(flame.ok()) << flame.status();
  constexpr int kInputs = static_cast<int>(Category::kInputs);
  constexpr int kGradients = static_cast<int>(Category::kGradients);
  EXPECT_THAT(flame->bytes, ElementsAre(288, 288, 64, 224));  // all, main, a, b
  EXPECT_THAT(flame->category, ElementsAre(kInputs, kInputs, kInputs, kGradients));
  EXPECT_THAT(flame->category_bytes, ElementsAre(160, 160, 64, 128));
  EXPECT_THAT(questions.AnswerFlame(query, questions, 1, 1)->category, IsEmpty());
}

TEST_F(QuestionsTest, BothColumnsOfAComparisonAddUp) {
  script_.Alloc(0x1000, 64, {"a", "main"});
  script_.Alloc(0x2000, 128, {"b", "main"});
  script_.Free(0x1000);
  Questions& questions = Ask();
  FlameQuery query;
  query.scope.lane = 1;
  query.scope.to = 3;
  const auto flame = questions.AnswerFlame(query, questions, 1, 1);
  ASSERT_TRUE(flame.ok()) << flame.status();
  EXPECT_THAT(flame->bytes, ElementsAre(128, 128, 128, 0));
  EXPECT_THAT(flame->before, ElementsAre(64, 64, 0, 64));
  EXPECT_EQ(flame->total, 128);
}

TEST_F(QuestionsTest, StackOfAHundredThousandFramesShowsTheInnermost) {
  std::vector<std::string> functions;
  for (int i = 0; i < 100'000; ++i) functions.push_back("f" + std::to_string(i % 10));
  script_.Alloc(0x1000, 64, functions);
  Questions& questions = Ask();
  const auto stacks = questions.AnswerStacks({trace_.rows.stack[0], 0, 4'000'000'000});
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_THAT((*stacks)[0].frames, SizeIs(FrameTable::kMaxFrames));
  EXPECT_EQ((*stacks)[0].frames[0].function, "f0");
  EXPECT_EQ((*stacks)[1].label, "no stack was recorded");
  EXPECT_EQ((*stacks)[2].label, "no stack was recorded");
  FlameQuery query;
  query.scope.lane = 1;
  query.scope.to = 1;
  EXPECT_THAT(questions.AnswerFlame(query)->parent, SizeIs(FrameTable::kMaxFrames + 1));
}

TEST_F(QuestionsTest, HugeSizesDoNotBreakSums) {
  script_.Alloc(0x1000, UINT64_MAX, {"a"});
  script_.Alloc(0x2000, UINT64_MAX, {"b"});
  Questions& questions = Ask();
  for (const auto by : {TableQuery::kStack, TableQuery::kBlock, TableQuery::kSize}) {
    TableQuery query;
    query.scope.lane = 1;
    query.scope.to = 2;
    query.by = by;
    query.limit = 10;
    query.sparkline = 3;
    const auto table = questions.AnswerTable(query);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->total_blocks, 2);
    EXPECT_FALSE(Dump(ToJson(*table)).empty());
  }
  EXPECT_TRUE(questions.AnswerSegments(1, 2).ok());
}

TEST_F(QuestionsTest, ReadsOnlyFilesNamedByStacks) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("gmt_questions." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string named = folder / "named.py", other = folder / "other.py";
  for (const std::string& path : {named, other}) {
    std::ofstream file(path);
    for (int i = 1; i <= 20; ++i) file << "line " << i << "\n";
  }
  format::FrameInfo frame;
  frame.function = script_.builder().InternString("f");
  frame.file = script_.builder().InternString(named);
  frame.line = 10;
  auto& event = script_.Alloc(0x1000, 64);
  event.stack = script_.builder().InternStack({script_.builder().InternFrame(frame)}, 0);
  Questions& questions = Ask();
  const auto text = questions.AnswerSource(named, 10);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->first, 6u);
  EXPECT_THAT(text->lines, SizeIs(9));
  EXPECT_EQ(text->lines[4], "line 10");
  EXPECT_EQ(questions.AnswerSource(named, 99)->note, "the file has no such line");
  EXPECT_EQ(questions.AnswerSource(other, 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(questions.AnswerSource("", 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(questions.AnswerSource("/etc/passwd", 1).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST_F(QuestionsTest, MetaHasStepsMarksFailuresAndGaps) {
  for (uint64_t i = 1; i <= 4; ++i) {
    script_.Mark("step", i);
    script_.Alloc(0x1000 * i, 64, {"f"});
  }
  script_.Failed(1 << 30, {"g"});
  script_.Gap(7);
  Ask();
  const Json meta = FileMetaJson(*examination_, {0, "/tmp/run.gmt", {""}, {""}, {""}, {"cut off"}},
                                 Json::array());
  EXPECT_EQ(meta["name"], "run.gmt");
  EXPECT_EQ(meta["events"], 4);
  EXPECT_EQ(meta["marks"].size(), 4u);
  EXPECT_EQ(meta["marks"][0]["name"], "step 1");
  EXPECT_EQ(meta["ooms"].size(), 1u);
  EXPECT_EQ(meta["ooms"][0]["requested"], 1 << 30);
  EXPECT_EQ(meta["losses"].size(), 1u);
  EXPECT_EQ(meta["losses"][0]["event"], 4);
  EXPECT_EQ(meta["categories"][0], "unknown");
  EXPECT_EQ(meta["steps"]["begin"].size(), meta["steps"]["end"].size());
  EXPECT_GE(meta["steps"]["begin"].size(), 3u);
}

TEST_F(QuestionsTest, InvalidUtf8IsReplacedInJson) {
  script_.Alloc(0x1000, 64, {"f\xff"});
  const auto stacks = Ask().AnswerStacks({trace_.rows.stack[0]});
  EXPECT_THAT(Dump(ToJson(*stacks)), HasSubstr("\xef\xbf\xbd"));
}

TEST(AlignTest, AlignsBySteps) {
  const auto make = [](int steps, int blocks) {
    analysis::EventScript script;
    uint64_t address = 0x1000;
    for (int i = 1; i <= steps; ++i) {
      script.Mark("step", static_cast<uint64_t>(i));
      for (int k = 0; k < blocks; ++k) script.Alloc(address += 0x1000, 64);
    }
    return script;
  };
  analysis::EventScript one = make(5, 2), two = make(4, 3);
  const analysis::Trace left = one.Build(), right = two.Build();
  const Alignment alignment = Align(analysis::Examination(left, one.definitions()),
                                    analysis::Examination(right, two.definitions()));
  EXPECT_EQ(alignment.by, Alignment::kStep);
  ASSERT_GE(alignment.steps.size(), 3u);
  EXPECT_EQ(alignment.steps[1].first, 2u);
  EXPECT_EQ(alignment.steps[1].second, 3u);
  analysis::EventScript none;
  const analysis::Trace empty = none.Build();
  EXPECT_EQ(Align(analysis::Examination(left, one.definitions()),
                  analysis::Examination(empty, none.definitions()))
                .by,
            Alignment::kTime);
}

}  // namespace
}  // namespace gmt::viewer
