#include "viewer/index/view_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "viewer/index/names.h"
#include "viewer/index/stacked_layout.h"

namespace gmt::viewer {
namespace {

using analysis::EventScript;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;

class ViewIndexTest : public ::testing::Test {
 protected:
  void Build() {
    trace_ = script_.Build();
    examination_ = std::make_unique<analysis::Examination>(trace_, script_.definitions());
    index_.Build(*examination_, examining_, [](std::string_view, double) {});
    const analysis::Categories categories = Categorize(*examination_);
    index_.AddCategories(trace_, categories, analysis::AliveTexts(*examination_, categories));
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const Lane& lane : index_.lanes()) labels.push_back(lane.label);
    return labels;
  }
  // All events with a column each; rows of one byte.
  BlockTile Stacked(double low, double high, uint32_t rows) const {
    BlockQuery query;
    query.window = {0, Axis::kEvent, 0, index_.events() + 1.0, index_.events() + 1};
    query.low = low;
    query.high = high;
    query.rows = rows;
    const auto tile = index_.SelectBlocks(query);
    EXPECT_TRUE(tile.ok()) << tile.status();
    return tile.ok() ? *tile : BlockTile();
  }
  BlockTile ByAddress(uint32_t lane) const {
    BlockQuery query;
    query.window = {lane, Axis::kEvent, 0, index_.events() + 1.0, index_.events() + 1};
    query.layout = Layout::kAddress;
    query.high = 1e12;
    query.rows = UINT32_MAX;
    const auto tile = index_.SelectBlocks(query);
    EXPECT_TRUE(tile.ok()) << tile.status();
    return tile.ok() ? *tile : BlockTile();
  }

  EventScript script_;
  analysis::Trace trace_;
  std::unique_ptr<analysis::Examination> examination_;
  std::mutex examining_;
  ViewIndex index_;
  uint64_t pinned_ = 0;
};

TEST_F(ViewIndexTest, DeviceWithTheHighestPeakComesFirstAndItsBlocksBeforeItsSegments) {
  script_.Alloc(0x1000000, kMiB);
  script_.Alloc(0x9000000, 8 * kMiB).device = 1;
  script_.Block(0x9000000, kMiB).device = 1;
  script_.Pinned(0x1000, 64 * kMiB);
  Build();
  EXPECT_THAT(Labels(), ElementsAre("GPU 1 · PyTorch blocks", "GPU 1 · driver memory",
                                    "GPU 0 · driver memory", "Host memory (pinned)"));
  EXPECT_TRUE(index_.lanes()[0].has_segments);
  EXPECT_EQ(index_.lanes()[0].blocks, 1u);
  EXPECT_EQ(index_.lanes()[0].peak_event, 3u);
  EXPECT_EQ(index_.lanes()[3].end_bytes, 64 * kMiB);
}

TEST_F(ViewIndexTest, RecordingWithoutMemoryHasNoLanes) {
  Build();
  EXPECT_THAT(index_.lanes(), IsEmpty());
  EXPECT_FALSE(index_.SelectCurve({0, Axis::kTime, 0, 1, 1}).ok());
}

TEST_F(ViewIndexTest, LongLivedBlocksLieBelowShortLivedOnes) {
  script_.Block(0x1000, 10);  // row 0, freed at once
  script_.FreeBlock(0x1000);
  script_.Block(0x2000, 10);  // row 1, for four events
  script_.Block(0x3000, 10);  // row 2, to the end
  script_.Block(0x4000, 10);  // row 3, freed at once
  script_.FreeBlock(0x4000);
  script_.FreeBlock(0x2000);
  Build();
  EXPECT_THAT(Stacked(0, 40, 40).row, ElementsAre(1, 2, 0, 3));
}

// Otherwise what is held when memory runs out would lift up all that was held before.
TEST_F(ViewIndexTest, BlockAllocatedShortlyBeforeTheEndLiesAboveThoseHeldForLong) {
  script_.Block(0x1000, 10);  // row 0, freed before the end
  for (uint64_t i = 0; i < 20; ++i) script_.Pinned(++pinned_ << 12, 64);
  script_.Block(0x2000, 10);  // row 21, never freed
  script_.FreeBlock(0x1000);
  Build();
  EXPECT_THAT(Stacked(0, 40, 40).row, ElementsAre(0, 21));
}

TEST_F(ViewIndexTest, BlocksSmallerThanARowBecomeARunBelowTheNextBlock) {
  script_.Block(0x1000, 100);
  script_.Block(0x2000, 3);
  script_.Block(0x3000, 3);
  script_.Block(0x4000, 100);
  Build();
  const BlockTile tile = Stacked(0, 206, 20);
  EXPECT_THAT(tile.row, ElementsAre(0, kNoRow, 3));
  EXPECT_THAT(tile.run_begin, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(tile.run_column, ElementsAre(4));
  EXPECT_THAT(tile.run_bytes, ElementsAre(6));
  EXPECT_EQ(tile.hidden, 2u);
}

TEST_F(ViewIndexTest, BlocksBelowTheViewAreOneRun) {
  for (uint64_t i = 0; i < 10; ++i) script_.Block(0x1000 * (i + 1), 100);
  Build();
  const BlockTile tile = Stacked(800, 1000, 200);
  EXPECT_THAT(tile.row, ElementsAre(kNoRow, 8, 9));
  EXPECT_THAT(tile.run_bytes, ElementsAre(800));
}

TEST_F(ViewIndexTest, BlocksShorterThanAColumnRemainInTheRest) {
  for (uint64_t i = 0; i < 50; ++i) {
    script_.Block(0x1000, 100);
    script_.FreeBlock(0x1000);
  }
  Build();
  BlockQuery query;
  query.window = {0, Axis::kEvent, 0, 100, 10};
  query.high = 100;
  query.rows = 10;
  EXPECT_THAT(index_.SelectBlocks(query)->row, IsEmpty());
  EXPECT_EQ(index_.SelectBlocks(query)->hidden, 50u);
  const CurveTile curve = *index_.SelectCurve(query.window);
  EXPECT_EQ(curve.series[0].max[3], 100);
  EXPECT_EQ(curve.series[0].min[3], 0);
}

TEST_F(ViewIndexTest, ColumnShowsWhatIsLiveAtItsPeak) {
  const auto let_pass = [&](uint64_t events) {
    for (; events > 0; --events) script_.Pinned(++pinned_ << 12, 64);
  };
  let_pass(4);
  script_.Block(0x2000, 4096);
  script_.Block(0x1000, 512);
  let_pass(1);
  script_.FreeBlock(0x2000);
  let_pass(1);
  script_.FreeBlock(0x1000);
  let_pass(1);
  Build();
  BlockQuery query;
  query.window = {0, Axis::kEvent, 0, 12, 7};
  query.high = 8192;
  query.rows = 8;
  const CurveTile curve = *index_.SelectCurve(query.window);
  EXPECT_THAT(curve.event, ElementsAre(0, 2, 4, 6, 7, 9, 11));
  EXPECT_THAT(curve.series[0].mid, ElementsAre(0, 0, 0, 4608, 4608, 512, 0));
  EXPECT_THAT(curve.peak, ElementsAre(0, 1, 5, 6, 6, 8, 10));
  EXPECT_THAT(curve.series[0].max, ElementsAre(0, 0, 4096, 4608, 4608, 512, 0));
  const BlockTile tile = *index_.SelectBlocks(query);
  EXPECT_THAT(tile.row, ElementsAre(kNoRow, testing::_));
  EXPECT_EQ(tile.first[1], 2);
  EXPECT_EQ(tile.last[1], 5);
  EXPECT_THAT(tile.run_column, ElementsAre(3, 5));
  EXPECT_THAT(tile.run_bytes, ElementsAre(512, 0));
}

TEST_F(ViewIndexTest, SegmentsAreAdjacentWithoutTheirGaps) {
  script_.Alloc(0x10000000, 2 * kMiB);
  script_.Alloc(0x90000000, 2 * kMiB);
  script_.Block(0x90000000 + kMiB, 512);
  script_.Block(0x10000000, 512);
  Build();
  const BlockTile tile = ByAddress(0);
  ASSERT_EQ(tile.spaces.size(), 2u);
  EXPECT_EQ(tile.spaces[1].place, 2 * kMiB);
  EXPECT_EQ(tile.spaces[1].address, 0x90000000u);
  EXPECT_EQ(tile.spaces[1].label, "small pool");
  EXPECT_THAT(tile.row, ElementsAre(2, 3));
  EXPECT_THAT(tile.place, ElementsAre(3 * kMiB, 0));
}

TEST_F(ViewIndexTest, ReusedAddressesHaveOnePlace) {
  script_.Alloc(0x10000000, 2 * kMiB);
  script_.Block(0x10000000, 512);
  script_.FreeBlock(0x10000000);
  script_.Free(0x10000000);
  script_.Alloc(0x10000000 + kMiB, 2 * kMiB);
  script_.Block(0x10000000 + kMiB, 512);
  Build();
  const BlockTile tile = ByAddress(0);
  ASSERT_EQ(tile.spaces.size(), 1u);
  EXPECT_EQ(tile.spaces[0].size, 3 * kMiB);
  EXPECT_THAT(tile.spaces[0].lives, ElementsAre(std::pair(1.0, 4.0), std::pair(5.0, HUGE_VAL)));
}

TEST_F(ViewIndexTest, AdjacentMappingsAreOneExpandableSegment) {
  script_.Reserve(0x10000000, 64 * kMiB);
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Create(0x70 + i, 2 * kMiB);
    script_.Map(0x10000000 + i * 2 * kMiB, 2 * kMiB, 0x70 + i);
  }
  script_.Block(0x10000000 + 3 * kMiB, 2 * kMiB);
  Build();
  const BlockTile tile = ByAddress(0);
  ASSERT_EQ(tile.spaces.size(), 1u);
  EXPECT_EQ(tile.spaces[0].size, 6 * kMiB);
  EXPECT_EQ(tile.spaces[0].label, "expandable");
  EXPECT_THAT(tile.place, ElementsAre(3 * kMiB));
}

TEST_F(ViewIndexTest, SampleOfFreeMemoryAloneIsNotMemoryInUse) {
  script_.Sample(5000, 10000);
  script_.Alloc(0x1000, 512);
  script_.Sample(0, 0);
  Build();
  const SampledSeries samples = index_.SelectCurve({0, Axis::kEvent, 0, 2, 2})->samples[0];
  EXPECT_THAT(samples.value, ElementsAre(5000, 5000));
}

TEST_F(ViewIndexTest, ColumnHasItsLastSampleOrAnOlderOne) {
  script_.Alloc(0x1000, 512);
  script_.Sample(5000, 10000);
  script_.Alloc(0x2000, 512);
  script_.Sample(6000, 10000);
  script_.Sample(7000, 10000);
  script_.Alloc(0x3000, 512);
  Build();
  EXPECT_EQ(index_.lanes()[0].capacity_bytes, 10000u);
  EXPECT_THAT(index_.lanes()[0].series, ElementsAre(Series::kLive, Series::kDriverUsed));
  const SampledSeries samples = index_.SelectCurve({0, Axis::kEvent, 0, 4, 4})->samples[0];
  EXPECT_THAT(samples.value, ElementsAre(IsNan(), 5000, 7000, 7000));
  const auto ns = [&](size_t sample) { return static_cast<double>(trace_.samples[sample].t_ns); };
  EXPECT_THAT(samples.ns, ElementsAre(IsNan(), ns(0), ns(2), ns(2)));
  // On the axis of time by the sample's own time, however many events are there.
  const double apart = ns(2) - ns(1);
  const Window window = {0, Axis::kTime, ns(1) - apart / 2, ns(2) + apart / 2, 2};
  EXPECT_THAT(index_.SelectCurve(window)->samples[0].value, ElementsAre(6000, 7000));
}

TEST_F(ViewIndexTest, HasAnAxisOfStepsIfThereAreSteps) {
  for (uint64_t i = 0; i < 4; ++i) {
    script_.Block(0x1000 * (i + 1), 100);
    script_.Block(0x9000 * (i + 1), 100);
    script_.Mark("step", i);
  }
  Build();
  ASSERT_TRUE(index_.has_steps());
  for (uint32_t event = 0; event < index_.events(); ++event) {
    EXPECT_LE(index_.PositionOf(Axis::kStep, event), index_.PositionOf(Axis::kStep, event + 1));
  }
  EXPECT_EQ(index_.EventAt(Axis::kStep, index_.PositionOf(Axis::kStep, 5)), 5u);
}

TEST_F(ViewIndexTest, StreamAndThreadCodesHaveNames) {
  script_.Block(0x1000, 100);
  format::Event& event = script_.Block(0x2000, 100);
  event.present |= format::kHasStream | format::kHasThread;
  event.stream = 0x7f;
  event.thread = 11;
  Build();
  EXPECT_THAT(index_.streams(), ElementsAre(kUnknownName, "0x7f"));
  EXPECT_THAT(index_.threads(), ElementsAre(kUnknownName, "11"));
  EXPECT_THAT(Stacked(0, 200, 200).stream, ElementsAre(0, 1));
}

TEST_F(ViewIndexTest, BlocksHaveTheirRolesAndTypes) {
  script_.Block(0x1000, 100);
  script_.Tensor(script_.Block(0x2000, 100), "bfloat16", "[50]");
  script_.Tensor(script_.Block(0x3000, 100), "float32", "[25]");
  script_.Tensor(script_.Block(0x4000, 100), "bfloat16", "[5, 10]");
  script_.Role(0x2000, format::kRoleSaved, "MulBackward0");
  script_.Role(0x3000, format::kRoleParameter);
  Build();
  EXPECT_THAT(index_.dtypes(), ElementsAre(kUnknownName, "bfloat16", "float32"));
  const BlockTile tile = Stacked(0, 400, 400);
  const auto of_rows = [&](const auto& column) {
    std::map<uint32_t, int> of;
    for (size_t i = 0; i < tile.row.size(); ++i) of[tile.row[i]] = column[i];
    return of;
  };
  using Expected = std::map<uint32_t, int>;
  EXPECT_EQ(of_rows(tile.dtype), (Expected{{0, 0}, {1, 1}, {2, 2}, {3, 1}}));
  const int saved = static_cast<int>(analysis::AliveReason::kSaved);
  const int parameter = static_cast<int>(analysis::AliveReason::kParameter);
  const int program = static_cast<int>(analysis::AliveReason::kProgram);
  EXPECT_EQ(of_rows(tile.role), (Expected{{0, program}, {1, saved}, {2, parameter}, {3, program}}));
}

TEST_F(ViewIndexTest, InvalidWindowsAreRefused) {
  script_.Block(0x1000, 100);
  Build();
  BlockQuery query;
  query.window = {0, Axis::kEvent, 0, 1, 10};
  query.high = 1;
  query.rows = 1;
  ASSERT_TRUE(index_.SelectBlocks(query).ok());
  const auto refuses = [&](auto&& change) {
    BlockQuery changed = query;
    change(changed);
    return absl::IsInvalidArgument(index_.SelectBlocks(changed).status());
  };
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.lane = 1; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.columns = 0; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.columns = kMaxColumns + 1; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.to = NAN; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.from = 1; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.window.axis = Axis::kStep; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.high = q.low; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.high = INFINITY; }));
  EXPECT_TRUE(refuses([](BlockQuery& q) { q.rows = 0; }));
}

TEST_F(ViewIndexTest, AnswersQueriesWhileItIsBuilt) {
  for (uint64_t i = 0; i < 20'000; ++i) {
    script_.Block(0x1000 * (1 + i % 64), 512 * (1 + i % 3));
    if (i % 2 == 0) script_.FreeBlock(0x1000 * (1 + i % 64));
  }
  std::atomic<bool> is_built = false;
  uint64_t early = 0, answers = 0;
  std::thread page([&] {
    for (bool last = false; !last;) {
      last = is_built.load();
      const Window window = {0, Axis::kEvent, 0, 30'000, 100};
      for (const bool ok : {index_.SelectCurve(window).ok(),
                            index_.SelectBlocks({.window = window, .high = 1e6, .rows = 9}).ok()}) {
        ++(ok ? answers : early);
      }
    }
  });
  Build();
  is_built = true;
  page.join();
  EXPECT_GT(answers, 1u);
}

}  // namespace
}  // namespace gmt::viewer
