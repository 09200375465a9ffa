#include "analysis/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/event_script.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kMiB = 1 << 20;

class ReportTest : public ::testing::Test {
 protected:
  Report Make(ReportOptions options = {}) {
    trace_ = script_.Build();
    auto report = MakeReport(trace_, script_.definitions(), options);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    for (const ReportDevice& device : report->devices) ExpectAddsUp(*report, device);
    return *std::move(report);
  }
  static void ExpectAddsUp(const Report& report, const ReportDevice& device) {
    uint64_t rows = 0;
    for (const ReportRow& row : report.rows) rows += row.device == device.index ? row.bytes : 0;
    EXPECT_EQ(rows, device.bytes) << "device " << device.index;
  }
  static ReportOptions By(GroupBy by) {
    ReportOptions options;
    options.by = by;
    return options;
  }
  static std::vector<std::string> Labels(const Report& report) {
    std::vector<std::string> labels;
    for (const ReportRow& row : report.rows) labels.push_back(row.label);
    return labels;
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(ReportTest, RowsAreStacksAtThePeakBiggestFirst) {
  script_.Alloc(0x1000, 100, {"small", "main"});
  script_.Alloc(0x2000, 300, {"big", "main"});
  script_.Alloc(0x3000, 300, {"big", "main"});
  script_.Free(0x2000);
  const Report report = Make();
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_EQ(report.rows[0].bytes, 600u);
  EXPECT_EQ(report.rows[0].count, 2u);
  EXPECT_EQ(report.rows[0].frames[0].Name(), "big");
  EXPECT_EQ(report.devices[0].bytes, 700u);
  EXPECT_EQ(report.devices[0].at.t_ns, 3 * EventScript::kStep_ns);
}

TEST_F(ReportTest, IdsOfStacksAreThoseOfTheFileWhateverTheOrder) {
  const uint32_t small = script_.Stack({"small"});
  script_.Alloc(0x1000, 1, {"small"});
  script_.Alloc(0x2000, 2, {"big"});
  EXPECT_EQ(Make().rows[1].id, "stack/" + std::to_string(small));
}

TEST_F(ReportTest, MemoryWithoutAStackIsARowAndIsNamedUnknown) {
  script_.Alloc(0x1000, 100);
  script_.Alloc(0x2000, 300, {"f"});
  const Report report = Make();
  EXPECT_EQ(report.unknown_bytes, 100u);
  EXPECT_TRUE(report.rows[1].unknown);
}

TEST_F(ReportTest, BlocksAndTheRestOfTheirSegmentAddUpToTheSegment) {
  script_.Alloc(0x100000, kMiB, {"segment"});
  script_.Block(0x100000, 1000, {"forward"});
  script_.Block(0x100800, 500, {"forward"});
  const Report report = Make();
  EXPECT_EQ(report.devices[0].bytes, kMiB);
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_EQ(report.rows[0].bytes, kMiB - 1500);
  EXPECT_EQ(report.rows[1].heap, "pytorch");
  ASSERT_THAT(report.devices[0].heaps, SizeIs(2));
  EXPECT_EQ(report.devices[0].heaps[0].live_bytes, kMiB);
  EXPECT_EQ(report.devices[0].heaps[0].reserved_bytes, std::nullopt);
  EXPECT_EQ(report.devices[0].heaps[1].live_bytes, 1500u);
  EXPECT_EQ(report.devices[0].heaps[1].reserved_bytes, kMiB);
}

TEST_F(ReportTest, OneHeapAloneIsWhole) {
  script_.Alloc(0x100000, kMiB, {"segment"});
  script_.Block(0x100000, 1000, {"forward"});
  ReportOptions options;
  options.heap = "driver";
  EXPECT_EQ(Make(options).devices[0].bytes, kMiB);
  options.heap = "pytorch";
  EXPECT_EQ(Make(options).devices[0].bytes, 1000u);
}

TEST_F(ReportTest, EveryDeviceIsShownAtItsOwnPeakAndHostMemoryLast) {
  script_.Alloc(0x1000, 100);
  script_.Free(0x1000);
  script_.Alloc(0x2000, 50).device = 1;
  script_.Pinned(0x3000, 10);
  const Report report = Make();
  ASSERT_THAT(report.devices, SizeIs(3));
  EXPECT_EQ(report.devices[0].bytes, 100u);
  EXPECT_EQ(report.devices[1].bytes, 50u);
  EXPECT_EQ(report.devices[2].index, kHostDevice);
  EXPECT_EQ(report.devices[2].bytes, 10u);
}

TEST_F(ReportTest, OtherMomentsAreTheSameForAllDevices) {
  script_.Alloc(0x1000, 100);
  script_.SnapshotTaken("mid");
  script_.Free(0x1000);
  ReportOptions options;
  options.at = *ParseAt("end");
  EXPECT_EQ(Make(options).devices[0].bytes, 0u);
  options.at = *ParseAt("snapshot:mid");
  EXPECT_EQ(Make(options).devices[0].bytes, 100u);
  options.at = *ParseAt("t:0.0015");
  EXPECT_EQ(Make(options).devices[0].bytes, 100u);
  EXPECT_EQ(Make(options).devices[0].peak_bytes, 100u);
}

TEST_F(ReportTest, RowsByFunctionAndFileTakeTheProgramsOwnLine) {
  script_.Alloc(0x1000, 100, {"cudaMalloc", "load", "main"});
  script_.Alloc(0x2000, 10, {"cudaMalloc", "load", "other"});
  script_.Alloc(0x3000, 1, {"cudaMalloc"});
  EXPECT_THAT(Labels(Make(By(GroupBy::kFunction))),
              ElementsAre("load (load.py)", "cudaMalloc (cudaMalloc.py)"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kFile))), ElementsAre("/src/load.py", "/src/cudaMalloc.py"));
}

TEST_F(ReportTest, RowsByHeapThreadStreamAndSize) {
  format::Event& event = script_.Alloc(0x1000, 100);
  event.present |= format::kHasThread | format::kHasStream;
  event.thread = 11;
  event.stream = 0x55;
  script_.Alloc(0x2000, 10);
  script_.Pinned(0x3000, 1);
  EXPECT_THAT(Labels(Make(By(GroupBy::kHeap))), ElementsAre("driver", "host"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kThread))),
              ElementsAre("thread 11", "thread not known", "thread not known"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kStream))),
              ElementsAre("stream 0x55", "no stream", "no stream"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kSize))),
              ElementsAre("100 bytes each", "10 bytes each", "1 bytes each"));
}

TEST_F(ReportTest, WhatIsNotInTheRecordingIsAnErrorThatSaysWhatIs) {
  script_.Alloc(0x1000, 100);
  trace_ = script_.Build();
  ReportOptions options;
  options.heap = "pytroch";
  EXPECT_EQ(MakeReport(trace_, script_.definitions(), options).status().message(),
            "no heap 'pytroch' was recorded; there is: driver, host");
  options.heap.clear();
  options.device = 3;
  EXPECT_FALSE(MakeReport(trace_, script_.definitions(), options).ok());
}

TEST_F(ReportTest, EmptyRecordingGivesAnEmptyReport) { EXPECT_THAT(Make().devices, SizeIs(0)); }

}  // namespace
}  // namespace gmt::analysis
