#include "analysis/show/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "analysis/report/report.h"
#include "analysis/show/life.h"
#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

class SelectionTest : public ::testing::Test {
 protected:
  const Examination& Examined() {
    if (!examination_) {
      trace_ = script_.Build();
      examination_.emplace(trace_, script_.definitions());
      categories_.emplace(Categorize(*examination_));
    }
    return *examination_;
  }
  Selection Of(const std::string& id) {
    Examined();
    return Select(*examination_, *categories_, leaks_, *ParseSubject(id));
  }
  std::string There(Subject::Kind kind) {
    Examined();
    return WhatThereIs(*examination_, *categories_, leaks_, kind);
  }

  format::Event& On(format::Event& event, uint64_t stream, uint32_t thread) {
    event.present |= format::kHasStream | format::kHasThread;
    event.stream = stream;
    event.thread = thread;
    return event;
  }

  // Writes a segment, a block in it on a stream, memory of a library, pinned memory, an unknown
  // stack.
  void Mixed() {
    script_.Alloc(0x10000, 0x4000, {"segment", "main"});
    On(script_.Block(0x10000, 0x1000, {"forward", "main"}), 0x70, 3);
    On(script_.Block(0x11000, 0x800, {"forward", "other"}), 0x71, 4);
    script_.Alloc(0x90000, 0x500, {"comm", "main"});
    script_.Pinned(0x50000, 0x100, {"pin", "main"});
    script_.Alloc(0x60000, 0x200);
  }

  EventScript script_;
  Trace trace_;
  std::optional<Examination> examination_;
  std::optional<Categories> categories_;
  LeakReport leaks_;
};

// Each id that a report prints selects what its row contains.
TEST_F(SelectionTest, EveryIdOfAReportSelectsItsRowsMemory) {
  Mixed();
  for (const GroupBy by :
       {GroupBy::kStack, GroupBy::kFunction, GroupBy::kFile, GroupBy::kHeap, GroupBy::kThread,
        GroupBy::kStream, GroupBy::kSize, GroupBy::kLibrary, GroupBy::kLayer, GroupBy::kCategory}) {
    ReportOptions options;
    options.by = by;
    const auto report = MakeReport(Examined(), options);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->rows.empty());
    for (const ReportRow& row : report->rows) {
      if (row.id == "stack/0" || row.id == "function/" || row.id == "file/") continue;
      const Life life = LifeOf(Examined(), *categories_, Of(row.id), 10);
      bool found = false;
      for (const LifeAtPeak& at : life.at_peaks) {
        if (at.device != row.device || trace_.heaps[at.heap] != row.heap) continue;
        EXPECT_EQ(at.bytes, row.bytes) << row.id;
        EXPECT_EQ(at.count, row.count) << row.id;
        found = true;
      }
      EXPECT_TRUE(found) << row.id;
    }
  }
}

TEST_F(SelectionTest, SegmentsAreNotCountedInAdditionToTheirBlocks) {
  const uint32_t both = script_.Stack({"both"});
  script_.Alloc(0x10000, 0x4000).stack = both;
  script_.Block(0x10000, 0x1000).stack = both;
  const Selection selection = Of("stack/" + std::to_string(both));
  EXPECT_EQ(selection.count(), 1u);
  EXPECT_EQ(selection.left_out(), 1u);
  EXPECT_TRUE(selection.Counts(1));
  EXPECT_TRUE(selection.Has(0));
}

TEST_F(SelectionTest, DeviceCountsItsDriverMemory) {
  Mixed();
  const Selection device = Of("device/0");
  EXPECT_TRUE(device.Counts(0));
  EXPECT_FALSE(device.Counts(1));
  EXPECT_EQ(device.count(), 3u);
  EXPECT_EQ(Of("device/host").count(), 1u);
  EXPECT_EQ(Of("device/7").count(), 0u);
}

TEST_F(SelectionTest, ForwardStackNarrowsTheStack) {
  const uint32_t backward = script_.Stack({"backward"}), one = script_.Stack({"one"}),
                 two = script_.Stack({"two"});
  for (const uint32_t forward : {one, two, two}) {
    format::Event& event = script_.Block(0x1000 * (script_.batch().events.size() + 1), 16);
    event.stack = backward;
    event.forward_stack = forward;
  }
  const std::string id = "stack/" + std::to_string(backward);
  EXPECT_EQ(Of(id).count(), 3u);
  EXPECT_EQ(Of(id + "+" + std::to_string(two)).count(), 2u);
}

TEST_F(SelectionTest, SuspectSelectsItsStacksOnItsDevice) {
  Mixed();
  LeakSuspect suspect;
  suspect.id = "leak/1";
  suspect.device = 0;
  LeakStack stack;
  stack.stack = script_.Stack({"forward", "main"});
  suspect.stacks = {stack};
  leaks_.suspects = {suspect};
  EXPECT_EQ(Of("leak/1").count(), 1u);
  EXPECT_EQ(Of("leak/2").count(), 0u);
}

TEST_F(SelectionTest, AvailableIdsAreListed) {
  Mixed();
  script_.Mark("step", 1);
  script_.SnapshotTaken("oom-1");
  EXPECT_EQ(There(Subject::kHeap), "heap/driver, heap/host, heap/pytorch");
  EXPECT_EQ(There(Subject::kThread), "thread/3, thread/4, thread/unknown");
  EXPECT_EQ(There(Subject::kStream), "stream/0x70, stream/0x71, stream/none");
  EXPECT_EQ(There(Subject::kDevice), "device/0, device/host");
  EXPECT_EQ(There(Subject::kSnapshot), "snapshot/oom-1");
  EXPECT_EQ(There(Subject::kMark), "mark/step");
  EXPECT_EQ(There(Subject::kRange), "");
  EXPECT_EQ(There(Subject::kLeak), "");
  EXPECT_EQ(There(Subject::kStep), "");
  EXPECT_EQ(There(Subject::kEvent), "event/1 to event/6");
  EXPECT_THAT(There(Subject::kFunction), HasSubstr("function/forward (forward.py)"));
}

}  // namespace
}  // namespace gmt::analysis
