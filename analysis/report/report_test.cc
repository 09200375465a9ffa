#include "analysis/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class ReportTest : public ::testing::Test {
 protected:
  Report Make(ReportOptions options = {}) {
    trace_ = script_.Build();
    auto report = MakeReport(Examination(trace_, script_.definitions()), options);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    for (const ReportDevice& device : report->devices) ExpectAddsUp(*report, device);
    return *std::move(report);
  }
  static void ExpectAddsUp(const Report& report, const ReportDevice& device) {
    uint64_t rows = 0;
    for (const ReportRow& row : report.rows) {
      rows += row.device == device.index ? row.bytes : 0;
      EXPECT_EQ(BytesOf(row.categories), row.bytes) << row.id;
    }
    EXPECT_EQ(rows, device.bytes) << "device " << device.index;
    EXPECT_EQ(BytesOf(device.categories), device.bytes) << "device " << device.index;
  }
  static uint64_t BytesOf(const std::vector<CategoryUse>& uses) {
    uint64_t bytes = 0;
    for (const CategoryUse& use : uses) bytes += use.bytes;
    return bytes;
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

TEST_F(ReportTest, RowsByCategoryAreNamedAfterTheCategory) {
  script_.Alloc(0, 4096);
  script_.Block(0, 512, {"f"});
  const Report report = Make(By(GroupBy::kCategory));
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_EQ(report.rows[0].id, "category/cache");
  EXPECT_EQ(report.rows[0].label, "cache");
  EXPECT_EQ(report.rows[1].id, "category/unknown");
}

TEST_F(ReportTest, RowsByLayerIncludeMemoryOutsideModules) {
  script_.Alloc(0x1000, 512, {"f"});
  const Report report = Make(By(GroupBy::kLayer));
  ASSERT_THAT(report.rows, SizeIs(1));
  EXPECT_EQ(report.rows[0].label, "outside of modules");
}

TEST_F(ReportTest, CategoriesOfOneHeapCoverItsWholeRows) {
  script_.Alloc(0, 4096);
  script_.Block(0, 512, {"f"});
  ReportOptions options;
  options.heap = "driver";
  const Report report = Make(options);
  ASSERT_THAT(report.devices[0].categories, SizeIs(1));
  EXPECT_EQ(report.devices[0].categories[0].bytes, 4096u);
}

TEST_F(ReportTest, IdsOfStacksAreThoseOfTheFileInAnyOrder) {
  const uint32_t small = script_.Stack({"small"});
  script_.Alloc(0x1000, 1, {"small"});
  script_.Alloc(0x2000, 2, {"big"});
  EXPECT_EQ(Make().rows[1].id, "stack/" + std::to_string(small));
}

TEST_F(ReportTest, MemoryWithoutAStackIsAnUnknownRow) {
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

TEST_F(ReportTest, SelectedHeapIsWhole) {
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

TEST_F(ReportTest, RowsByFunctionAndFileUseTheProgramsOwnLine) {
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

TEST_F(ReportTest, RowsByTypeAndByTheNodeThatSaves) {
  script_.Tensor(script_.Block(0x1000, 1000), "float32", "[250]");
  script_.Role(0x1000, format::kRoleSaved, "SoftmaxBackward0");
  script_.Tensor(script_.Block(0x2000, 200), "float16", "[100]");
  script_.Role(0x2000, format::kRoleSaved, "MmBackward0");
  script_.Role(0x2000, 0);  // released
  script_.Tensor(script_.Block(0x3000, 100), "float32", "[25]");
  script_.Block(0x4000, 10);
  EXPECT_THAT(Labels(Make(By(GroupBy::kDtype))),
              ElementsAre("float32", "float16", "dtype not known"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kNode))),
              ElementsAre("SoftmaxBackward0", "not saved for backward"));
  EXPECT_THAT(Labels(Make(By(GroupBy::kLayerNode))),
              ElementsAre("outside of modules: SoftmaxBackward0", "not saved for backward"));
}

TEST_F(ReportTest, ErrorsListWhatTheRecordingHas) {
  script_.Alloc(0x1000, 100);
  trace_ = script_.Build();
  ReportOptions options;
  options.heap = "pytroch";
  EXPECT_EQ(MakeReport(Examination(trace_, script_.definitions()), options).status().message(),
            "no heap 'pytroch' was recorded; there is: driver, host");
  options.heap.clear();
  options.device = 3;
  EXPECT_FALSE(MakeReport(Examination(trace_, script_.definitions()), options).ok());
}

TEST_F(ReportTest, EmptyRecordingGivesAnEmptyReport) { EXPECT_THAT(Make().devices, SizeIs(0)); }

// ---- Blocks of a framework

TEST_F(ReportTest, MemoryOfABackwardPassIsARowForEachLineOfTheForwardPass) {
  script_.Alloc(0x100000, kMiB);
  const uint32_t first = script_.Stack({"linear1", "main"});
  const uint32_t second = script_.Stack({"linear2", "main"});
  script_.Block(0x100000, 4096, {"apply"}).forward_stack = first;
  script_.Block(0x102000, 1024, {"apply"}).forward_stack = second;
  script_.Block(0x103000, 512, {"apply"});
  ReportOptions options;
  options.heap = "pytorch";
  const Report report = Make(options);
  ASSERT_THAT(report.rows, SizeIs(3));
  EXPECT_EQ(report.rows[0].forward_frames[0].Name(), "linear1");
  EXPECT_EQ(report.rows[0].frames[0].Name(), "apply");
  EXPECT_EQ(report.rows[1].forward_frames[0].Name(), "linear2");
  EXPECT_TRUE(report.rows[2].forward_frames.empty());
  EXPECT_NE(report.rows[0].id, report.rows[1].id);
}

TEST_F(ReportTest, FreesThatAwaitAStreamArePending) {
  script_.Alloc(0x100000, kMiB);
  script_.Block(0x100000, 4096);
  script_.Block(0x101000, 512);
  script_.RecordEvent(1, 7);
  script_.FreeBlock(0x101000);
  script_.EventDone(1);
  script_.RecordEvent(1, 7);
  script_.FreeBlock(0x100000);
  ReportOptions options;
  options.at = *ParseAt("end");
  const ReportHeap heap = Make(options).devices[0].heaps[1];
  EXPECT_EQ(heap.live_bytes, 0u);
  EXPECT_EQ(heap.pending_bytes, 4096u);
  EXPECT_EQ(heap.may_await_bytes, 0u);
}

TEST_F(ReportTest, RoundingIsKnownIfAllRequestsAreKnown) {
  const auto block = [this](uint64_t address, uint64_t requested) {
    format::Event& event = script_.Block(address, 1024);
    event.present |= format::kHasRequested;
    event.requested = requested;
  };
  block(0x1000, 1000);
  block(0x2000, 600);
  EXPECT_EQ(Make().devices[0].heaps.back().rounding_bytes, 24u + 424u);
  script_.Block(0x3000, 1024);
  EXPECT_EQ(Make().devices[0].heaps.back().rounding_bytes, std::nullopt);
}

TEST_F(ReportTest, DriverMemoryNamesTheAllocatingLibrary) {
  script_.Alloc(0x100000, 4096, {"ncclCommInitRank", "main"});
  script_.Alloc(0x200000, 2048, {"mine", "main"});
  script_.Alloc(0x300000, 1024);
  script_.Alloc(0x400000, kMiB, {"ncclGroupEnd", "main"});
  const Report rows = Make();
  EXPECT_EQ(rows.rows[1].library, "NCCL");
  EXPECT_EQ(rows.rows[2].library, "the program");
  EXPECT_EQ(rows.rows[3].library, "");
  const Report libraries = Make(By(GroupBy::kLibrary));
  EXPECT_THAT(Labels(libraries), ElementsAre("NCCL", "the program", "library not known"));
  EXPECT_EQ(libraries.rows[0].bytes, kMiB + 4096);
}

TEST_F(ReportTest, BlocksBelongToNoLibrary) {
  script_.Alloc(0x100000, kMiB, {"ncclMemAlloc"});
  script_.Block(0x100000, 512, {"ncclMemAlloc"});
  EXPECT_THAT(Labels(Make(By(GroupBy::kLibrary))), ElementsAre("NCCL", "blocks of pytorch"));
}

TEST_F(ReportTest, AllocatorCoversTheShownDevicesAndTimes) {
  script_.Alloc(0x100000, kMiB);
  script_.Block(0x100000, 512);
  script_.FreeBlock(0x100000);
  script_.Free(0x100000);
  EXPECT_THAT(Make().allocator.devices, SizeIs(1));
  EXPECT_THAT(Make().allocator.devices[0].actions, SizeIs(1));
  ReportOptions options;
  options.window.to_ns = 2 * EventScript::kStep_ns;
  EXPECT_THAT(Make(options).allocator.devices[0].actions, SizeIs(0));
}

}  // namespace
}  // namespace gmt::analysis
