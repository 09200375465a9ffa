// TraceBuilder::BeginAgain(): a builder that knows what is held, and nothing that has ended.

#include <gtest/gtest.h>

#include <vector>

#include "analysis/testing/event_script.h"
#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {
namespace {

// A script whose events are read in two parts, the second by a builder created in between.
class TraceWindowTest : public testing::Test {
 protected:
  // Passes everything written so far to the first builder.
  void Split() { split_ = script_.events().size(); }
  // Builds both traces of the whole script.
  void Read() {
    TraceBuilder builder(script_.definitions());
    format::EventBatch first = script_.batch(), second = script_.batch();
    first.events.resize(split_);
    second.events.erase(second.events.begin(),
                        second.events.begin() + static_cast<std::ptrdiff_t>(split_));
    ASSERT_TRUE(builder.OnEvents(first).ok());
    TraceBuilder next = builder.BeginAgain(&moved_);
    dropped_ = builder.step_count();
    ASSERT_TRUE(builder.OnEvents(second).ok());
    ASSERT_TRUE(next.OnEvents(second).ok());
    whole_ = builder.SoFar();
    window_ = next.SoFar();
  }

  EventScript script_;
  size_t split_ = 0;
  std::vector<RowId> moved_;
  Step dropped_ = 0;
  Trace whole_, window_;
};

TEST_F(TraceWindowTest, HeldMemoryKeepsTimeAndStackOfItsBirth) {
  script_.Alloc(0x1000, 100, {"gone"});
  script_.Free(0x1000);
  auto& kept = script_.Alloc(0x2000, 200, {"kept"});
  kept.present |= format::kHasStream | format::kHasRequested;
  kept.stream = 7;
  kept.requested = 150;
  const int64_t born = kept.t_ns;
  Split();
  script_.Alloc(0x3000, 300, {"new"});
  script_.Free(0x2000);
  Read();
  ASSERT_EQ(window_.rows.count(), 2u);
  EXPECT_EQ(moved_, (std::vector<RowId>{kNoRow, 0}));
  EXPECT_EQ(window_.rows.BornBefore(0), born);
  EXPECT_EQ(window_.rows.stack[0], whole_.rows.stack[1]);
  EXPECT_EQ(window_.rows.stream[0], 7u);
  EXPECT_EQ(window_.rows.Requested(0), 150u);
  EXPECT_EQ(window_.rows.death[0] + dropped_, whole_.rows.death[1]);
  EXPECT_EQ(window_.last_step() + dropped_, whole_.last_step());
  EXPECT_EQ(window_.unknowns.rows_from_before, 0u);
}

TEST_F(TraceWindowTest, MemoryFromBeforeTheRecordingIsKept) {
  script_.Api(script_.Alloc(0x1000, 100), kBeforeAttachApi);
  Split();
  script_.Free(0x1000);
  Read();
  EXPECT_EQ(whole_.unknowns.rows_from_before, 1u);
  EXPECT_EQ(window_.unknowns.rows_from_before, 1u);
  EXPECT_NE(window_.rows.flags[0] & kRowReportedBefore, 0);
  EXPECT_EQ(window_.rows.death[0], 1u);
}

TEST_F(TraceWindowTest, MappedMemoryLivesUntilItIsReleasedAndUnmapped) {
  script_.Reserve(0x100000, 0x4000);
  script_.Create(0x51, 0x2000, {"segment"});
  script_.Map(0x100000, 0x2000, 0x51);
  script_.Create(0x52, 0x2000, {"other"});
  script_.Map(0x102000, 0x2000, 0x52);
  script_.Release(0x51);  // still mapped, so it is held
  script_.Block(0x100000, 512, {"block"});
  Split();
  script_.Block(0x102000, 512, {"block"});
  script_.Unmap(0x100000, 0x2000);
  script_.Release(0x52);
  script_.Unmap(0x102000, 0x2000);
  Read();
  ASSERT_EQ(window_.mappings.size(), 2u);
  for (RowId row = 0; row < moved_.size(); ++row) {
    ASSERT_NE(moved_[row], kNoRow);
    EXPECT_EQ(window_.rows.size[moved_[row]], whole_.rows.size[row]);
    const Step death = whole_.rows.death[row];
    EXPECT_EQ(window_.rows.death[moved_[row]], death == kNever ? kNever : death - dropped_) << row;
  }
  EXPECT_EQ(window_.mappings[0].physical, moved_[whole_.mappings[0].physical]);
  EXPECT_EQ(window_.mappings[0].death_t_ns, whole_.mappings[0].death_t_ns);
  // The newer block lies in a segment known from before.
  EXPECT_EQ(window_.rows.flags[window_.rows.count() - 1] & kRowUnbacked, 0);
  EXPECT_NE(window_.rows.flags[moved_[whole_.mappings[1].physical]] & kRowHoldsBlocks, 0);
}

TEST_F(TraceWindowTest, OpenRangesAndStreamsAreStillKnown) {
  script_.NewStream(9, /*blocking=*/false, /*priority=*/-1);
  script_.NameStream(9, "copies");
  script_.Begin("epoch", 1);
  script_.Begin("past", 2);
  script_.End("past", 2);
  Split();
  script_.Alloc(0x1000, 100);
  script_.End("epoch", 1);
  Read();
  ASSERT_EQ(window_.ranges.size(), 1u);
  EXPECT_EQ(window_.ranges[0].name, "epoch");
  EXPECT_EQ(window_.ranges[0].begin_t_ns, whole_.ranges[0].begin_t_ns);
  EXPECT_EQ(window_.ranges[0].end, 1u);
  ASSERT_EQ(window_.streams.size(), 1u);
  EXPECT_EQ(window_.streams[0].priority, -1);
  EXPECT_EQ(window_.streams[0].name, whole_.streams[0].name);
}

TEST_F(TraceWindowTest, AllocatorTotalsAreComparedWithTheSameSums) {
  script_.Alloc(0x10000, 0x8000);
  EventScript::Totals(script_.Block(0x10000, 512), 512, 0x8000);
  Split();
  EventScript::Totals(script_.Block(0x10200, 512), 1024, 0x8000);
  Read();
  ASSERT_EQ(window_.reconciliations.size(), 1u);
  EXPECT_EQ(window_.reconciliations[0].allocated.compared, 1u);
  EXPECT_EQ(window_.reconciliations[0].allocated.different, 0u);
  EXPECT_EQ(window_.reconciliations[0].reserved.different, 0u);
}

// A snapshot may contain an allocation whose event, and so whose birth, has not been read yet.
TEST_F(TraceWindowTest, ReusedAddressIsALostFreeAlsoAfterASnapshot) {
  script_.Alloc(0x1000, 100, {"first"});
  TraceBuilder builder(script_.definitions());
  ASSERT_TRUE(builder.OnEvents(script_.batch()).ok());
  TraceBuilder next = builder.BeginAgain(&moved_);
  script_.Alloc(0x1000, 100, {"second"});
  (void)script_.definitions();
  format::EventBatch second = script_.batch();
  second.events.erase(second.events.begin());
  Snapshot snapshot;
  snapshot.set_t_ns(second.events.front().t_ns + 1);
  for (TraceBuilder* each : {&builder, &next}) {
    ASSERT_TRUE(each->OnSnapshot(snapshot).ok());
    ASSERT_TRUE(each->OnEvents(second).ok());
    const Trace trace = each->SoFar();
    EXPECT_EQ(trace.unknowns.frees_lost, 1u);
    EXPECT_EQ(trace.rows.count(), 2u);
  }
}

TEST_F(TraceWindowTest, SoFarChangesNothing) {
  TraceBuilder builder(script_.definitions());
  for (uint64_t i = 0; i < 50; ++i) {
    EventScript::Totals(script_.Block(0x1000 * (i + 1), 512, {"f"}), 512 * (i + 1), 0);
  }
  (void)script_.definitions();
  format::EventBatch batch = script_.batch();
  for (const format::Event& event : script_.batch().events) {
    batch.events = {event};
    ASSERT_TRUE(builder.OnEvents(batch).ok());
    (void)builder.SoFar();
  }
  const Trace asked = builder.SoFar(), plain = script_.Build();
  EXPECT_EQ(asked.last_step(), plain.last_step());
  ASSERT_EQ(asked.reconciliations.size(), 1u);
  EXPECT_EQ(asked.reconciliations[0].allocated.different, 0u);
  EXPECT_EQ(asked.reconciliations[0].allocated.compared, 50u);
}

}  // namespace
}  // namespace gmt::analysis
